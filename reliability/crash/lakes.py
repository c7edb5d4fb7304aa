"""Pipelines into lake tables, what a reader sees in the tables, and other programs that write to them meanwhile.

Each pipeline has a table of rows that two pumps append to, and one with a key whose rows replace others.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError

from reliability.crash.shapes import SORTED

CATALOG = "{out}/catalog.db"
ICEBERG = f"""catalog 'here', catalog.type 'sql', catalog.uri 'sqlite:///{CATALOG}',
  catalog.warehouse 'file://{{out}}/lake'"""
THEIRS = "theirs"  # the key of rows that other programs add


def _pumps(appended: str, keyed: str) -> str:
    return f"""{SORTED}
CREATE STREAM rows (k STRING NOT NULL, v INT CHECK (v < 8)) USING {appended};
CREATE STREAM latest (k STRING NOT NULL, v BIGINT, total BIGINT) USING {keyed};
CREATE STREAM totals (k STRING NOT NULL, s TIMESTAMP NOT NULL, total BIGINT, change STRING) USING {
        keyed.replace("latest", "totals").replace("key 'k'", "key 'k, s', mode 'changes'")
    };
CREATE VIEW panes AS SELECT STREAM k, PANE_START AS s, SUM(v) AS total
  FROM c GROUP BY PANES(ev, DURATION INTERVAL '20' SECOND, DISCARD AGE INTERVAL '2' MINUTE), k EMIT CHANGES;
CREATE PUMP p1 AS INSERT INTO rows SELECT STREAM COALESCE(k, '?') AS k, v FROM sa;
CREATE PUMP p2 AS INSERT INTO rows SELECT STREAM COALESCE(k, '?') AS k, v FROM sb;
CREATE PUMP p3 AS INSERT INTO latest SELECT STREAM COALESCE(k, '?') AS k, v, SUM(v) OVER (PARTITION BY k
  ORDER BY x.ROWTIME RANGE INTERVAL '1' MINUTE PRECEDING) AS total FROM sa AS x;
CREATE PUMP p4 AS INSERT INTO totals SELECT STREAM COALESCE(k, '?') AS k, s, total, change FROM panes;
""".replace("CREATE VIEW panes", "CREATE VIEW c EVENT TIME (ev) AS SELECT STREAM k, v, ev FROM b;\nCREATE VIEW panes")


LAKES: Mapping[str, str] = {
    "delta tables": _pumps(
        "delta PARTITIONED BY (k) OPTIONS (path '{out}/rows', optimize.files '3')",
        "delta OPTIONS (path '{out}/latest', key 'k', rowtime.column '')",
    ),
    "iceberg tables": _pumps(
        f"iceberg PARTITIONED BY (k) OPTIONS (table 'db.rows', {ICEBERG})",
        f"iceberg OPTIONS (table 'db.latest', {ICEBERG}, key 'k', rowtime.column '')",
    ),
}


def rows_of_tables(out: Path) -> dict[str, list[str]]:
    """The rows of each table below a folder, but for those of other programs, as a set."""
    found = {path.parent.name: DeltaTable(str(path.parent)).to_pyarrow_table() for path in out.glob("*/_delta_log")}
    if (out / "catalog.db").exists():
        catalog = _catalog(out)
        with suppress(NamespaceAlreadyExistsError):
            catalog.create_namespace("db")
        found |= {name[-1]: catalog.load_table(name).scan().to_arrow() for name in catalog.list_tables("db")}
    return {name: _shown(table.to_pylist()) for name, table in found.items() if table.num_rows}


def others_write(out: Path) -> int:
    """Another program appends a row to each table and compacts it, where it can; how many tables it has changed."""
    changed = 0
    for log in out.glob("*/_delta_log"):
        with suppress(CommitFailedError):
            table = DeltaTable(str(log.parent))
            write_deltalake(table, _row(pa.schema(table.schema().to_arrow())), mode="append")
            DeltaTable(str(log.parent)).optimize.compact()
            changed += 1
    if (out / "catalog.db").exists():
        for name in _catalog(out).list_tables("db"):
            with suppress(CommitFailedException):
                made = _catalog(out).load_table(name)
                made.append(_row(made.schema().as_arrow()))
                changed += 1
    return changed


def _row(schema: pa.Schema) -> pa.Table:
    values: dict[str, Any] = {field.name: None if field.nullable else 0 for field in schema}
    return pa.Table.from_pylist([{**values, "k": THEIRS}], schema=schema)


def _shown(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows if row["k"] != THEIRS)


def _catalog(out: Path) -> Catalog:
    return load_catalog("here", type="sql", uri=f"sqlite:///{out}/catalog.db", warehouse=f"file://{out}/lake")
