"""Pipelines into lake tables, their versions as a reader sees them, and other programs that write to them meanwhile.

Each pipeline has a table of rows that two pumps append to, and one with a key whose rows replace others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from pyiceberg.exceptions import CommitFailedException, NamespaceAlreadyExistsError

from reliability.crash.shapes import SORTED
from rowtime.core.stores import Place
from rowtime.runtime.iceberg_catalog import opened
from rowtime.runtime.sinks.delta_compaction import compacted
from rowtime.runtime.sinks.iceberg_table import IcebergTable
from rowtime.runtime.sinks.lake import Conflict

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

CATALOG = "{out}/catalog.db"
ICEBERG = f"""catalog 'here', catalog.type 'sql', catalog.uri 'sqlite:///{CATALOG}',
  catalog.warehouse 'file://{{out}}/lake'"""
PUMPS = ("p1", "p2")  # into the table that has rows of both
THEIRS = "theirs"  # the key of rows that other programs add


def _pumps(appended: str, keyed: str) -> str:
    return f"""{SORTED}
CREATE STREAM rows (p STRING, k STRING NOT NULL, v INT CHECK (v < 8)) USING {appended};
CREATE STREAM latest (k STRING NOT NULL, v BIGINT, total BIGINT) USING {keyed};
CREATE STREAM totals (k STRING NOT NULL, s TIMESTAMP NOT NULL, total BIGINT, change STRING) USING {
        keyed.replace("latest", "totals").replace("key 'k'", "key 'k, s', mode 'changes'")
    };
CREATE VIEW panes AS SELECT STREAM k, PANE_START AS s, SUM(v) AS total
  FROM c GROUP BY PANES(ev, DURATION INTERVAL '20' SECOND, DISCARD AGE INTERVAL '2' MINUTE), k EMIT CHANGES;
CREATE PUMP p1 AS INSERT INTO rows SELECT STREAM 'p1' AS p, COALESCE(k, '?') AS k, v FROM sa;
CREATE PUMP p2 AS INSERT INTO rows SELECT STREAM 'p2' AS p, COALESCE(k, '?') AS k, v FROM sb;
CREATE PUMP p3 AS INSERT INTO latest SELECT STREAM COALESCE(k, '?') AS k, v, SUM(v) OVER (PARTITION BY k
  ORDER BY x.ROWTIME RANGE INTERVAL '1' MINUTE PRECEDING) AS total FROM sa AS x;
CREATE PUMP p4 AS INSERT INTO totals SELECT STREAM COALESCE(k, '?') AS k, s, total, change FROM panes;
""".replace("CREATE VIEW panes", "CREATE VIEW c EVENT TIME (ev) AS SELECT STREAM k, v, ev FROM b;\nCREATE VIEW panes")


def few_pumps(appended: str, keyed: str) -> str:
    """Return the tables for stores, with less to compute: this tests requests, not operators."""
    return f"""{SORTED}
CREATE STREAM rows (p STRING, k STRING NOT NULL, v INT CHECK (v < 8)) USING {appended};
CREATE STREAM latest (k STRING NOT NULL, v BIGINT) USING {keyed};
CREATE PUMP p1 AS INSERT INTO rows SELECT STREAM 'p1' AS p, COALESCE(k, '?') AS k, v FROM sa;
CREATE PUMP p2 AS INSERT INTO rows SELECT STREAM 'p2' AS p, COALESCE(k, '?') AS k, v FROM sb;
CREATE PUMP p3 AS INSERT INTO latest SELECT STREAM COALESCE(k, '?') AS k, v FROM sa;
"""


APPENDED = {
    "delta": "delta PARTITIONED BY (k) OPTIONS (path '{out}/rows', optimize.files '3')",
    "iceberg": f"iceberg PARTITIONED BY (k) OPTIONS (table 'db.rows', {ICEBERG}, optimize.files '3')",
}
KEYED = {
    "delta": "delta OPTIONS (path '{out}/latest', key 'k', rowtime.column '')",
    "iceberg": f"iceberg OPTIONS (table 'db.latest', {ICEBERG}, key 'k', rowtime.column '')",
}
LAKES: Mapping[str, str] = {f"{kind} tables": _pumps(APPENDED[kind], KEYED[kind]) for kind in APPENDED}


@dataclass(frozen=True)
class Delta:
    """A Delta table; ``how``: what deltalake has to know of its store."""

    place: Place
    how: Mapping[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The path or the URL."""
        return str(self.place)

    def content(self) -> pa.Table | None:
        """Return the rows; ``None`` if there is no table."""
        found = self._opened()
        return None if found is None else found.to_pyarrow_table()

    def history(self) -> Iterator[pa.Table]:
        """Return the rows of each version, oldest first."""
        found = self._opened()
        for version in range(-1 if found is None else found.version() + 1):
            yield DeltaTable(self.url, version, storage_options=dict(self.how)).to_pyarrow_table()

    def append(self) -> bool:
        """Append a row, as another program does; True if it is there, False if others were faster."""
        found = self._opened()
        if found is None:
            return False
        with suppress(CommitFailedError):
            write_deltalake(found, _row(pa.schema(found.schema().to_arrow())), mode="append")
            return True
        return False

    def compact(self) -> bool:
        """Compact the table, as `rowtime optimize` does; True if it combined files.

        Not by deltalake, which also commits if the pump has just compacted the same files: then rows are there twice.
        """
        found = self._opened()
        if found is None:
            return False
        with suppress(Conflict):
            return compacted(found, self.place) > 0
        return False

    def _opened(self) -> DeltaTable | None:
        try:
            return DeltaTable(self.url, storage_options=dict(self.how))
        except TableNotFoundError:
            return None


@dataclass(frozen=True)
class Iceberg:
    """A table of the catalog in a folder; ``lake``: properties of the catalog, if the tables are elsewhere."""

    out: Path
    name: str
    lake: Mapping[str, str] = field(default_factory=dict)

    def content(self) -> pa.Table | None:
        """As above."""
        return self._opened().scan().to_arrow()

    def history(self) -> Iterator[pa.Table]:
        """Return the rows of each snapshot."""
        table = self._opened()
        return (table.scan(snapshot_id=one.snapshot_id).to_arrow() for one in table.snapshots())

    def append(self) -> bool:
        """As above."""
        with suppress(CommitFailedException):
            made = self._opened()
            made.append(_row(made.schema().as_arrow()))
            return True
        return False

    def compact(self) -> bool:
        """As above, by what `rowtime optimize` calls: pyiceberg has no compaction."""
        with suppress(Conflict):
            return IcebergTable("here", _told(self.out, self.lake), f"db.{self.name}", "another").compact() > 0
        return False

    @property
    def metadata(self) -> str:
        """Return the current metadata file of the table."""
        return str(self._opened().metadata_location)

    def _opened(self) -> Any:
        return _catalog(self.out, self.lake).load_table(f"db.{self.name}")


Tables = Mapping[str, Delta | Iceberg]


def tables_below(out: Path) -> Tables:
    """Return the lake tables below a folder."""
    found = {path.parent.name: Delta(path.parent) for path in sorted(out.glob("*/_delta_log"))}
    return {**found, **tables_of_catalog(out, {})}


def tables_of_catalog(out: Path, lake: Mapping[str, str]) -> Tables:
    """Return the Iceberg tables of the catalog in a folder, if there is one."""
    if not (out / "catalog.db").exists():
        return {}
    catalog = _catalog(out, lake)
    with suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace("db")
    return {name[-1]: Iceberg(out, name[-1], lake) for name in catalog.list_tables("db")}


def rows_of_tables(tables: Tables) -> dict[str, list[str]]:
    """Return the rows of each table as a set, without those of other programs."""
    found = {name: table.content() for name, table in tables.items()}
    return {name: _shown(rows.to_pylist()) for name, rows in found.items() if rows is not None and rows.num_rows}


def others_write(tables: Tables) -> Counter[str]:
    """Let another program append a row to each table and compact it, if it can. Return how often it did what."""
    found: Counter[str] = Counter()
    for table in tables.values():
        kind = "Delta" if isinstance(table, Delta) else "Iceberg"
        found[f"appends of other programs to {kind} tables"] += table.append()
        found[f"compactions of {kind} tables by other programs"] += table.compact()
    return found


def torn_versions(tables: Tables, states: Sequence[Mapping[str, Any]]) -> tuple[int, list[str]]:
    """Return the number of versions, and those without whole ticks of each pump, each once (semantics 14.1).

    ``states``: the content of the tables after each tick of an undisturbed run.
    """
    versions, torn = 0, []
    for name, table in tables.items():
        known = [state["files"].get(name, []) for state in states]
        for number, rows in enumerate(table.history()):
            versions += 1
            shown = _shown(rows.to_pylist())
            for pump in PUMPS:
                own = [row for row in shown if _is_of(row, pump)]
                if own not in [[row for row in state if _is_of(row, pump)] for state in known]:
                    torn.append(f"version {number} of {name} has of {pump} what no tick leaves: {own}")
    return versions, torn


def _is_of(row: str, pump: str) -> bool:
    """Return True for the rows of a pump, or of a table that has one pump, for each."""
    return "('p', '" not in row or f"('p', '{pump}')" in row


def _row(schema: pa.Schema) -> pa.Table:
    values: dict[str, Any] = {field.name: None if field.nullable else 0 for field in schema}
    return pa.Table.from_pylist([{**values, "k": THEIRS}], schema=schema)


def _shown(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows if row["k"] != THEIRS)


def _catalog(out: Path, lake: Mapping[str, str]) -> Catalog:
    return opened("here", _told(out, lake))


def _told(out: Path, lake: Mapping[str, str]) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{out}/catalog.db", "warehouse": f"file://{out}/lake", **lake}
