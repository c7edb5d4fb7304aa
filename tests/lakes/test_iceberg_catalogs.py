"""Catalogs of Iceberg tables that several programs open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog.sql import SqlCatalog, SqlCatalogBaseTable
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from rowtime.runtime.iceberg_catalog import opened

if TYPE_CHECKING:
    from pathlib import Path

TABLES = SqlCatalogBaseTable.metadata


@pytest.mark.parametrize("created", [["iceberg_tables"], list(TABLES.tables)], ids=["one table", "all tables"])
def test_a_catalog_whose_tables_another_program_creates_meanwhile_opens(
    created: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    create, failures = SqlCatalog.create_tables, []

    def create_tables(catalog: SqlCatalog) -> None:
        if failures:
            create(catalog)
            return
        TABLES.create_all(create_engine(uri), tables=[TABLES.tables[name] for name in created])
        try:
            TABLES.create_all(catalog.engine, checkfirst=False)
        except OperationalError as error:
            failures.append(str(error))
            raise

    monkeypatch.setattr(SqlCatalog, "create_tables", create_tables)
    catalog = opened("here", {"type": "sql", "uri": uri, "warehouse": f"file://{tmp_path}"})
    catalog.create_namespace("db")
    assert "already exists" in failures[0]
    assert catalog.list_namespaces() == [("db",)]


def test_a_catalog_that_cannot_be_opened_fails_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtime.runtime.iceberg_catalog._PAUSES", (1e9,))
    with pytest.raises(OperationalError, match="unable to open database file"):
        opened("here", {"type": "sql", "uri": f"sqlite:///{tmp_path}/missing/catalog.db"})
