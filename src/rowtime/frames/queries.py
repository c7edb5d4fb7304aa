"""Runs queries of DuckDB over Arrow tables; each thread has its own connections."""

from __future__ import annotations

import atexit
import mmap
import os
import re
import tempfile
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Lock, Thread, get_ident, local
from threading import enumerate as threads
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowtime.frames.columns import Projection
from rowtime.frames.kinds import without_zones
from rowtime.frames.prepared import Statements

if TYPE_CHECKING:
    import duckdb

SETTINGS: Final[dict[str, Any]] = {
    "autoinstall_known_extensions": False,  # nothing is downloaded
    "autoload_known_extensions": False,
    "preserve_insertion_order": True,
    "memory_limit": "2GB",  # of one process; larger intermediate results go to `spilled`
}
MANY_ROWS: Final = 500_000
"""Rows from which a query or a file takes so much memory that `give_back` is worth its time."""
KEPT: Final = 320 << 20
"""Bytes in memory up to which the allocators may keep what they have."""
GROWN: Final = 16 << 20
"""Bytes by which memory has to grow until they give back again, because what is in use stays."""
FEW_ROWS: Final = 20_000
"""Rows of all tables of a query up to which one thread is faster than starting two."""

_LEFT_TO_SPARK: Final = re.compile(r"'left to Spark ([0-9a-f]{8}): (.*)' to BOOL", re.DOTALL)
_NUMBERS: Final = count()
_THREAD: Final = local()
_OPEN: Final[dict[tuple[int, bool], duckdb.DuckDBPyConnection]] = {}  # by thread, and whether it handles few rows
_DATABASES: Final[dict[bool, duckdb.DuckDBPyConnection]] = {}  # by whether they handle few rows
_OPENING: Final = Lock()
_LEFT: Final = [0]  # bytes in memory after the allocators gave back last
_PREPARED: Final[dict[int, Statements]] = {}
COMPUTING: Final[set[int]] = set()
"""The threads that are running a query."""


class Uncomputed(Exception):
    """Rows could not be computed: by DuckDB, or by Catalyst, which reports the reason."""


class Left(Uncomputed):
    """A row has a value of which only Spark knows what an expression, of this ``mark``, makes of it."""

    def __init__(self, mark: str, expression: str) -> None:
        super().__init__(f"only Spark knows all values of {expression}")
        self.mark = mark


@dataclass(frozen=True)
class Query:
    """A query over named tables; its columns are named ``c0``, ``c1`` and so on."""

    sql: str
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    name: str = ""  # of the table, if these are all its rows
    projection: Projection | None = None  # if it only computes columns of a table

    def __str__(self) -> str:
        return self.name or f"({self.sql})"

    def over(self, sql: str, *others: Query) -> Query:
        """Return a query that reads this one, and others."""
        tables = dict(self.tables)
        for other in others:
            tables.update(other.tables)
        return Query(sql, tables)

    @property
    def sized(self) -> int:
        """Return how many rows its tables have."""
        return sum(int(table.num_rows) for table in self.tables.values())

    def number(self) -> int:
        """Return the number of rows; raises ``Uncomputed``."""
        return int(self.over(f"SELECT count(*) AS c0 FROM {self}").rows()["c0"][0].as_py())  # noqa: S608 - translated

    def rows(self) -> pa.Table:
        """Return the rows; raises ``Uncomputed``."""
        import duckdb  # noqa: PLC0415 - `check` does without it

        few = self.sized <= FEW_ROWS
        if not few and self.projection is not None and (rows := self._projected(self.projection)) is not None:
            return rows
        connection, began = _connection(few=few), time.perf_counter_ns()
        COMPUTING.add(get_ident())
        try:
            prepared = _statements().begun(self.sql, self.tables) if few else None
            if prepared is not None:
                with prepared as sql:
                    return _few_rows(connection, sql)
            give_back(self.sized)
            return self._unprepared(connection, few=few)
        except duckdb.Error as wrong:
            left = _LEFT_TO_SPARK.search(str(wrong))
            raise (Left(left[1], left[2]) if left else Uncomputed(str(wrong))) from wrong
        finally:
            COMPUTING.discard(get_ident())
            _spans().append((began, time.perf_counter_ns()))

    def _projected(self, projection: Projection) -> pa.Table | None:
        """Return the rows with columns of the table as they are, which a query would copy; it computes the others.

        DuckDB keeps the order of rows (``preserve_insertion_order``). ``None`` if it has to compute all columns.
        """
        arrays = projection.arrays()
        others = [f"c{n}" for n, array in enumerate(arrays) if array is None]
        if len(others) == len(arrays):
            return None
        computed = self.over(f"SELECT {', '.join(others)} FROM {self}").rows() if others else None  # noqa: S608 - names of ours
        if computed is not None and computed.num_rows != projection.table.num_rows:  # an aggregate of all rows
            return None
        columns = iter(() if computed is None else computed.columns)
        whole = [next(columns) if array is None else array for array in arrays]
        return pa.Table.from_arrays(whole, names=[f"c{n}" for n in range(len(whole))])

    def _unprepared(self, connection: duckdb.DuckDBPyConnection, *, few: bool) -> pa.Table:
        for name, table in self.tables.items():
            connection.register(name, table)
        try:
            return _few_rows(connection, self.sql) if few else connection.sql(self.sql).to_arrow_table()
        finally:
            for name in self.tables:
                connection.unregister(name)


_OF_ALL_KINDS: Final = """SELECT l.c0, count(*) AS c1, max(l.c0 + r.c0) AS c2, unnest(generate_series(0, 1)) AS c3,
min(epoch_us(make_timestamptz(r.c0))) AS c4, sum(CASE WHEN l.c0 < 1 THEN 1 ELSE 0 END) AS c5
FROM {0} AS l JOIN {0} AS r ON l.c0 = r.c0 WHERE l.c0 >= 0 GROUP BY l.c0 ORDER BY l.c0"""
"""A query with the parts that most ticks use: the system reads the code of each when it is used first."""


def warm() -> None:
    """Load what the first tick needs, while sources and checkpoints are read.

    Call it once Java runs: starting Java forks this process, and other threads should not run then. The process ends
    after it: DuckDB does not bear that its thread is ended.
    """

    def opened() -> None:
        table = all_of(pa.table({"c0": pa.array([0, 1], pa.int64())}))
        table.over(_OF_ALL_KINDS.format(table), table).rows()
        _database(few=False)

    Thread(target=opened, name="rowtime-warm").start()


def give_back(rows: int) -> None:
    """Let the allocators of Arrow and DuckDB give back what they keep, before a step with so many rows.

    Each keeps what its own largest step has used, and none can use what another one keeps. DuckDB gives it back when
    its threads end.
    """
    if rows >= MANY_ROWS and resident() > max(KEPT, _LEFT[0] + GROWN):
        pa.default_memory_pool().release_unused()
        if False in _DATABASES:
            _connection(few=False).execute("SET threads = 1; RESET threads")
        _LEFT[0] = resident()


def resident() -> int:
    """Return how many bytes of this process are in memory; 0 if the system does not say so."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * mmap.PAGESIZE


def all_of(table: pa.Table) -> Query:
    """Return a query of all rows of a table that has a query's column names."""
    name, table = f"t{next(_NUMBERS)}", _in_one_piece(table)
    projection = Projection.of(table)
    return Query(f"SELECT * FROM {name}", {name: table}, name, projection)  # noqa: S608 - a name of ours


def _in_one_piece(table: pa.Table) -> pa.Table:
    """Return the table so that DuckDB reads it: it takes no part of an array of structs that have structs in them."""
    if not any(map(_has_structs_in_structs, table.schema.types)):
        return table
    arrays = [pa.concat_arrays(column.chunks) if column.num_chunks else column for column in table.columns]
    return pa.Table.from_arrays(arrays, names=table.column_names)


def _has_structs_in_structs(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and any(pa.types.is_struct(field.type) for field in kind)


def called(sql: str, number: int) -> str:
    """Return an expression as the column of this number, without unnecessary words, because parsing takes time."""
    return sql if sql in (name := f"c{number}", f"l.{name}", f"r.{name}") else f"{sql} AS {name}"


def as_columns(table: pa.Table, names: list[str]) -> pa.Table:
    """Return columns of a table with a query's column names; times without their zone, which is UTC."""
    arrays = [_plain(table.column(name)) for name in names]
    return pa.Table.from_arrays(arrays, names=[f"c{n}" for n in range(len(names))])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    wanted = without_zones(column.type)
    return column if column.type == wanted else column.cast(wanted)


def spans_since(last: int) -> list[tuple[int, int]]:
    """Return when queries of this thread began and ended (ns, performance counter); drop those before ``last``."""
    spans = [span for span in _spans() if span[0] >= last]
    _THREAD.spans = spans
    return spans


def _spans() -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] | None = getattr(_THREAD, "spans", None)
    if spans is None:
        spans = _THREAD.spans = []
    return spans


def _few_rows(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """Return the rows of a query that is bound once. `connection.sql` binds it twice: first for the column types."""
    fetched = getattr(
        connection, "_result_as_arrow", None
    )  # the public one warns of a copy, which does not matter for few rows
    if fetched is None:
        return connection.sql(sql).to_arrow_table()
    connection.execute(sql)
    return fetched(FEW_ROWS, reader=False)


def _statements() -> Statements:
    """Return the prepared statements of this thread's connection for few rows."""
    known = _PREPARED.get(get_ident())
    if known is None:
        known = _PREPARED[get_ident()] = Statements(_connection(few=True))
    return known


def _connection(*, few: bool) -> duckdb.DuckDBPyConnection:
    """Return this thread's connection for few or many rows; connections of threads that have ended are closed.

    All threads share one database for each: to open one takes 20 ms. Tables belong to a connection.
    """
    connection = _OPEN.get((get_ident(), few))
    if connection is None:
        close({thread.ident for thread in threads()})
        connection = _OPEN[get_ident(), few] = _database(few=few).cursor()
    return connection


def spilled() -> str:
    """Return the folder for what does not fit in memory: Spark's, in a task. It is made when it is needed."""
    folder = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or tempfile.gettempdir()
    return str(Path(folder) / f"rowtime-{os.getpid()}")


def _database(*, few: bool) -> duckdb.DuckDBPyConnection:
    import duckdb  # noqa: PLC0415 - as above

    with _OPENING:
        if few not in _DATABASES:
            settings = {**SETTINGS, "temp_directory": spilled(), **({"threads": 1} if few else {})}
            _DATABASES[few] = restrict(duckdb.connect(config=settings))
        return _DATABASES[few]


@atexit.register
def close(but: Collection[int | None] = ()) -> None:
    """Close the connections of all threads but some, and the databases if they are of no thread any more.

    One that is open when Python exits makes the process abort.
    """
    for thread, few in [*_OPEN]:
        if thread not in but:
            _PREPARED.pop(thread, None)
            _OPEN.pop((thread, few)).close()
    while not but and _DATABASES:
        _DATABASES.popitem()[1].close()


SAFE: Final[Mapping[str, str]] = {
    "unused_columns": "It drops columns that nobody reads, as Spark does, and keeps all others.",
    "column_lifetime": "It drops columns after their last use, when they are computed.",
    "build_side_probe_side": "It chooses which side of a join is hashed; the condition is computed for the same pairs.",
}
"""Steps of DuckDB's optimizer that stay on, each with the reason why no row fails less often.

`i + 1 > 0` fails for the greatest INT. DuckDB would compare `i` with another constant, find that two conditions
contradict each other, or that `i + 1` is never NULL; and nothing would fail. In a tick in which a row fails, each
expression is tried by itself, so such a step makes rows depend on each other. So each step is off unless it is listed
here, and so is each that a later version adds. Without these, wide rows and joins are slow.
"""


def restrict(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Turn off all other steps, for all connections to the same database."""
    names = [name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
    connection.execute(f"SET disabled_optimizers = '{','.join(name for name in names if name not in SAFE)}'")
    return connection
