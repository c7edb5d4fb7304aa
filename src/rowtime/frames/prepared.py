"""Prepared statements for queries over few rows, which repeat from tick to tick over other rows.

DuckDB takes 4 to 6 ms to parse, bind and plan a query with a join or groups, and 1 ms to run it over few rows. A query
that comes a second time is prepared: its tables become views of objects that give the present rows, and the numbers
that `operators.contract.passed` puts into it become parameters.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    import duckdb

MOST: Final = 256
"""Statements of one connection; the one that was not used for the longest time is dropped."""
PASSED: Final = "xor({}, 0)"
"""A passed number. DuckDB would plan again for each value of a parameter that is compared with a column directly."""

_PARTS: Final = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | \bt(?P<table>\d+)\b | \bxor\(CAST\((?P<number>-?\d+)\ AS\ BIGINT\),\ 0\)""",
    re.VERBOSE,
)
_Kinds = tuple[tuple[str, ...], ...]  # the types of the columns of each table


class _Rows:
    """What a view reads: the rows of the present tick."""

    def __init__(self) -> None:
        self.table: pa.Table | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give the rows to DuckDB, each time that it reads the view."""
        assert self.table is not None
        return self.table.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True)
class _Pattern:
    """A query without what differs from tick to tick."""

    parts: tuple[str, ...]  # the texts between tables and numbers
    places: tuple[int | None, ...]  # of each gap: the table by its place, or None for a number
    kinds: _Kinds


@dataclass(frozen=True)
class _Statement:
    """A statement, and what its views read; without rows it is only a note about a query."""

    name: str
    rows: Sequence[_Rows] = ()

    def view(self, place: int) -> str:
        return f"{self.name}_{place}"


_NEW, _ONCE, _NEVER = _Statement("new"), _Statement("seen once"), _Statement("cannot be prepared")


class Statements:
    """The prepared statements of one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection, self._numbers = connection, count()
        self._known: OrderedDict[_Pattern, _Statement] = OrderedDict()

    def begun(self, sql: str, tables: Mapping[str, pa.Table]) -> _Run | None:
        """Return a run of a statement over these tables; ``None`` if the query is new, or cannot be prepared."""
        import duckdb  # noqa: PLC0415 - `check` does without it

        pattern, names, numbers = _pattern(sql, tables)
        if not names or len(names) < len(tables):
            return None
        given = [tables[name] for name in names]
        statement = self._known.get(pattern, _NEW)
        if statement is _ONCE:
            try:
                statement = self._prepared(pattern, given)
            except duckdb.Error:  # for example, because a function wants a constant
                statement = _NEVER
        self._note(pattern, _ONCE if statement is _NEW else statement)
        return _Run(statement, given, numbers) if statement.rows else None

    def _note(self, pattern: _Pattern, statement: _Statement) -> None:
        self._known[pattern] = statement
        self._known.move_to_end(pattern)
        while len(self._known) > MOST:
            self._drop(self._known.popitem(last=False)[1])

    def _prepared(self, pattern: _Pattern, tables: Sequence[pa.Table]) -> _Statement:
        statement = _Statement(f"s{next(self._numbers)}", [_Rows() for _ in tables])
        for place, (rows, table) in enumerate(zip(statement.rows, tables, strict=True)):
            rows.table = table
            self._connection.register(statement.view(place), rows)
        parameters = count(1)
        gaps = [
            PASSED.format(f"CAST(${next(parameters)} AS BIGINT)") if place is None else statement.view(place)
            for place in pattern.places
        ]
        sql = "".join(part + gap for part, gap in zip(pattern.parts, [*gaps, ""], strict=True))
        try:
            self._connection.execute(f"PREPARE {statement.name} AS {sql}")
        except BaseException:
            self._without_views(statement)
            raise
        return statement

    def _drop(self, statement: _Statement) -> None:
        if statement.rows:
            self._connection.execute(f"DEALLOCATE {statement.name}")
            self._without_views(statement)

    def _without_views(self, statement: _Statement) -> None:
        for place in range(len(statement.rows)):
            self._connection.unregister(statement.view(place))


@dataclass(frozen=True)
class _Run:
    """A statement with the rows and numbers of a tick."""

    statement: _Statement
    tables: Sequence[pa.Table]
    numbers: Sequence[str]

    def __enter__(self) -> str:
        """Return the SQL that runs it."""
        for rows, table in zip(self.statement.rows, self.tables, strict=True):
            rows.table = table
        given = ", ".join(f"CAST({number} AS BIGINT)" for number in self.numbers)
        return f"EXECUTE {self.statement.name}({given})" if given else f"EXECUTE {self.statement.name}"

    def __exit__(self, *_: object) -> None:
        for rows in self.statement.rows:
            rows.table = None


def _pattern(sql: str, tables: Mapping[str, pa.Table]) -> tuple[_Pattern, list[str], list[str]]:
    """Return the pattern of a query, the names of its tables in order, and its numbers."""
    parts: list[str] = []
    places: list[int | None] = []
    order: dict[str, int] = {}
    numbers: list[str] = []
    end = 0
    for match in _PARTS.finditer(sql):
        if match["number"] is not None:
            numbers.append(match["number"])
            places.append(None)
        elif match["table"] is not None:
            places.append(order.setdefault(match[0], len(order)))
        else:
            continue
        parts.append(sql[end : match.start()])
        end = match.end()
    kinds = tuple(tuple(map(str, tables[name].schema.types)) for name in order)
    return _Pattern((*parts, sql[end:]), tuple(places), kinds), [*order], numbers
