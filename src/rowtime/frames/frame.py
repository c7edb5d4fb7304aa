"""The rows that operators step over.

A frame is a query of DuckDB over Arrow tables; nothing is computed before the rows are read. Spark computes the values
of expressions without a translation (`frames.translated`), and only these (`frames.catalyst`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowtime.frames.answers import ANSWERS, Part
from rowtime.frames.called import with_calls
from rowtime.frames.catalyst import kind_of, part_of, with_values
from rowtime.frames.collation_keys import kind_of_keys
from rowtime.frames.columns import places_in, selected, sorted_alike
from rowtime.frames.generators import generator_of, with_rows
from rowtime.frames.joins import BESIDE, joined_by_values, same_names
from rowtime.frames.keyed import OF_WINDOWS, key_of, with_keys, with_keys_of, with_windows_over_keys
from rowtime.frames.kinds import array_text, arrow_of, held_type, holds, is_collated, spark_type, without_zones
from rowtime.frames.queries import FEW_ROWS, Query, Uncomputed, all_of, as_columns, called
from rowtime.frames.spark_groups import grouped_by_spark
from rowtime.frames.tables import Column, delivered, sorted_by, stacked, with_chunks
from rowtime.frames.translated import Item, group_key, item, order, parsed, scope_of, scope_of_fields, tested
from rowtime.frames.values import Scope, Value, cast, wider
from rowtime.frames.words import Untranslated
from rowtime.kernels.frames import Ints
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


MOST: Final = 1_000_000  # rows of a stream that a tick takes (docs/design/whole-ticks.md)
_JOINS: Final = {"inner": "INNER", "left": "LEFT", "left_semi": "SEMI", "left_anti": "ANTI"}


class Frame:
    """Rows with columns ``fields``; ``session``: of Spark, which computes what has no translation."""

    def __init__(self, session: SparkSession, fields: Sequence[Column], rows: Query | pa.Table) -> None:
        self._session = session
        self.fields = tuple(fields)
        self._rows, self._shared = rows, False
        self.called: dict[str, tuple[str, pa.Array]] = {}  # values of calls of the user's functions, by their text

    @classmethod
    def of(cls, session: SparkSession, table: pa.Table, fields: Sequence[Column]) -> Frame:
        """Return a frame with the rows of a table; frames hold the types of all ``fields``."""
        assert all(holds(kind) for _, kind in fields), fields
        return cls(session, fields, as_columns(table, [name for name, _ in fields]))

    @classmethod
    def empty(cls, session: SparkSession, fields: Sequence[Column]) -> Frame:
        """Return a frame without rows."""
        table = pa.table({f"c{n}": pa.array([], without_zones(arrow_of(kind))) for n, (_, kind) in enumerate(fields)})
        return cls(session, fields, table)

    # -- what there is ------------------------------------------------------------------

    @property
    def columns(self) -> list[str]:
        """The names."""
        return [name for name, _ in self.fields]

    @cached_property
    def scope(self) -> Scope:
        """Return the scope for expressions over the rows; a duplicate name is not in it."""
        return scope_of_fields(self.fields)

    def can(self, *texts: str) -> bool:
        """Return True if expressions over the rows can be computed here."""
        try:
            for text in texts:
                if not self.translates(text):
                    self._types(text)
        except (Untranslated, Uncomputed):
            return False
        return True

    def _types(self, text: str) -> None:
        """Ask Spark for the types of an expression and of the calls in it; raises ``Untranslated``."""
        part = part_of(self._session, f"{text} AS `v`", self.fields)[1]
        if not part.calls:
            kind_of(self._session, part)
            return
        answers = ANSWERS.get()
        with nullcontext() if answers is None else answers.not_counting():
            Frame.empty(self._session, self.fields).valued([f"{text} AS `v`"])

    def translates(self, text: str) -> bool:
        """Return True if an expression has a translation."""
        try:
            self.scope.value(parsed(text).unalias())
        except Untranslated:
            return False
        return True

    # -- the rows of others -------------------------------------------------------------

    def valued(self, texts: Sequence[str]) -> Frame:
        """Return a select list; Spark computes functions of a row without a translation; raises ``Untranslated``."""
        generators = [call for text in texts if (call := generator_of(text)) is not None]
        if generators and not (len(generators) == 1 and generators[0].is_plain):
            return with_rows(self, texts)
        try:
            return self._selected([*self._items(texts)])
        except Untranslated:
            if generators:
                return with_rows(self, texts)
            if any(is_collated(kind) for _, kind in self.fields) and any(map(OF_WINDOWS.search, texts)):
                keys, texts = with_windows_over_keys(self, texts)
                return keys.valued(texts)
            rows, texts = with_calls(self, texts)
            rows, texts = with_values(rows, self._session, texts)
            return rows._selected([*rows._items(texts)])  # noqa: SLF001 - one of ours

    def of_kinds(self, kinds: Mapping[str, str]) -> Frame:
        """Return the same values with other types of some columns, which frames hold in the same way."""
        rows = self._table() if self._shared else self._rows
        return Frame(self._session, [(name, kinds.get(name, kind)) for name, kind in self.fields], rows)

    def kept(self, condition: str) -> Frame:
        """Return the rows that satisfy a condition; Spark computes it for each if it has no translation.

        Raises ``Untranslated`` if it is no function of the row, and ``Uncomputed``.
        """
        try:
            return self._of(behind=f" WHERE {tested(condition, self.scope)}")
        except Untranslated:
            more = self.valued(["*", f"{condition} AS `__held`"])
            if more.fields[-1][1] != "boolean":
                raise
            held = more._of(behind=f" WHERE c{len(self.fields)}")  # noqa: SLF001 - one of ours
            return held.valued([*map(quoted, self.columns)])

    def toDF(self, *names: str) -> Frame:  # noqa: N802 - Spark's name
        """As Spark's."""
        fields = [(name, kind) for name, (_, kind) in zip(names, self.fields, strict=True)]
        return Frame(self._session, fields, self.query)

    def unionByName(self, other: Frame, *, allowMissingColumns: bool = False) -> Frame:  # noqa: N802, N803 - Spark's
        """As Spark's."""
        if allowMissingColumns:
            return self._beside(other).unionByName(other._beside(self))
        return self._united(other)

    def limit(self, most: int) -> Frame:
        """As Spark's."""
        return self._of(behind=f" LIMIT {most}")

    def in_order(self, terms: Sequence[str]) -> Frame:
        """Return the rows sorted by some terms of ORDER BY; raises ``Untranslated`` for a value without an order."""
        at = self._numbers(terms) if self.sized > FEW_ROWS else None  # for few, one query does all
        if at and (rows := sorted_by(self._table(), [f"c{n}" for n in at])) is not None:
            return Frame(self._session, self.fields, rows)
        try:
            return self._of(behind=f" ORDER BY {order(terms, self.scope)}")
        except Untranslated:
            rows, keys = with_keys_of(self, terms)
            return rows.in_order(keys).valued([*map(quoted, self.columns)])

    def grouped(self, keys: Sequence[str], aggregates: Sequence[str]) -> Frame:
        """Return groups by columns, with aggregates ``call AS name``; Spark computes those without a translation.

        Raises ``Untranslated`` and ``Uncomputed``.
        """
        groups = self.grouped_here(keys, aggregates)
        if groups is not None:
            return groups
        rows, aggregates = with_calls(self, aggregates)
        groups = None if rows is self else rows.grouped_here(keys, aggregates)
        return grouped_by_spark(rows, keys, aggregates) if groups is None else groups

    def grouped_here(self, keys: Sequence[str], aggregates: Sequence[str], gathered: str = "") -> Frame | None:
        """Return groups without Spark; ``None`` if an aggregate has no translation.

        ``gathered``: a BIGINT column whose values become a list, in any order.
        """
        try:
            named = [item(attribute(key), self.scope) for key in keys]
            collated = [one.name for one in named if is_collated(one.value.type)]
            if collated and not {*map(key_of, collated)} <= {*self.columns}:
                return with_keys(self, collated).grouped_here(keys, aggregates, gathered)
            by = ", ".join(self._compared(one).value.sql for one in named)
            named = [self._shown(one) for one in named]
            items = [*named, *(item(text, self.scope) for text in aggregates)]
            if gathered:
                items.append(Item(gathered, Value(f"list({self.scope.columns[gathered].sql})", array_text("bigint"))))
            return self._selected(items, f" GROUP BY {by}" if by else "")
        except Untranslated:
            return None

    def joined(self, other: Frame, test: str, how: str) -> Frame:
        """Return the rows joined with those of another frame that satisfy ``test``.

        ``how``: ``inner``, ``left``, ``left_semi`` or ``left_anti``. Spark computes what has no translation, of each
        side or of pairs; raises ``Untranslated`` and ``Uncomputed``.
        """
        same_names(self.columns, other.columns)
        try:
            return self._joined(other, test, how)
        except Untranslated:
            return joined_by_values(self, other, test, how, Frame._joined)

    def _joined(self, other: Frame, test: str, how: str) -> Frame:
        """Return the same; raises ``Untranslated`` for a condition without a translation."""
        sides = (("l", self), ("r", other if how in BESIDE else None))
        scope = {name: Value(f"l.{of.sql}", of.type) for name, of in self.scope.columns.items()}
        scope |= {name: Value(f"r.{of.sql}", of.type) for name, of in other.scope.columns.items()}
        met = tested(test, scope_of(scope))
        columns = [(f"{side}.c{n}", of) for side, frame in sides if frame for n, of in enumerate(frame.fields)]
        listed = ", ".join(called(column, n) for n, (column, _) in enumerate(columns))
        mine, theirs = self.query, other.query
        sql = f"SELECT {listed} FROM {mine} AS l {_JOINS[how]} JOIN {theirs} AS r ON {met}"  # noqa: S608 - translated
        return Frame(self._session, [of for _, of in columns], mine.over(sql, theirs))

    # -- the rows -----------------------------------------------------------------------

    @property
    def query(self) -> Query:
        """Return the query for the rows; those of a shared frame are computed first."""
        if self._shared:
            self._table()
        return self._rows if isinstance(self._rows, Query) else all_of(self._rows)

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """Return the rows; raises ``Uncomputed``."""
        table = self._table()
        arrays = [delivered(table.column(n), kind) for n, (_, kind) in enumerate(self.fields)]
        fields = [pa.field(name, array.type) for name, array in zip(self.columns, arrays, strict=True)]
        return pa.table(arrays, schema=pa.schema(fields))

    def count(self) -> int:
        """As Spark's."""
        return int(self._table().num_rows)

    @property
    def number(self) -> int:
        """Return the number of rows, counted by a query if they are not computed yet; raises ``Uncomputed``."""
        return self._rows.number() if isinstance(self._rows, Query) else int(self._rows.num_rows)

    @property
    def known(self) -> int | None:
        """Return the number of rows; ``None`` if they are not computed yet."""
        return None if isinstance(self._rows, Query) else int(self._rows.num_rows)

    @property
    def sized(self) -> int:
        """Return how many rows its input tables have."""
        return self._rows.sized if isinstance(self._rows, Query) else int(self._rows.num_rows)

    def chosen(self, which: pa.Array | pa.ChunkedArray) -> Frame:
        """Return the rows for which a mask is true, in the order of `toArrow`."""
        return Frame(self._session, self.fields, self._table().filter(which))

    def taken(self, places: Ints) -> Frame:
        """Return the rows at some places, in the order of `toArrow`."""
        return Frame(self._session, self.fields, self._table().take(pa.array(places)))

    def computed(self, texts: Sequence[str]) -> Frame:
        """Compute all expressions for each row, and return the same rows; raises ``Uncomputed``."""
        computed = self.valued(["*", *(f"{text} AS `__computed{n}`" for n, text in enumerate(texts))])
        same = Frame(self._session, self.fields, computed._table().select(range(len(self.fields))))  # noqa: SLF001 - one of ours
        same.called = self.called
        return same

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the values of a column; times without their zone, which is UTC."""
        return self._table().column(self.columns.index(name))

    def with_column(self, name: str, kind: str, values: pa.Array) -> Frame:
        """Return the rows with a new or replaced column, in the order of `toArrow`."""
        table, more = self._table(), as_columns(pa.table({name: values}), [name]).column(0)
        at = self.columns.index(name) if name in self.columns else len(self.fields)
        table = table.set_column(at, f"c{at}", more) if at < len(self.fields) else table.append_column(f"c{at}", more)
        return Frame(self._session, [*self.fields[:at], (name, kind), *self.fields[at + 1 :]], table)

    def places(self, names: Sequence[str]) -> pa.Array | None:
        """Return the place, from 0 on, of each row in ascending order; ``None`` if that needs a query.

        A query with many rows is computed for that; few are numbered by what reads them.
        """
        at = self._numbers(names)
        few = self.known is None and self.sized <= FEW_ROWS
        kinds = None if at is None or few else {n: self.fields[n][1] for n in at}
        return places_in(self._table(), kinds) if kinds and sorted_alike(kinds.values()) else None

    def share(self) -> None:
        """Compute the rows once, because several will read them."""
        self._shared = True

    # -- as the methods of a Spark DataFrame of the same names ------------------------------

    @property
    def sparkSession(self) -> SparkSession:  # noqa: N802 - Spark's name
        """As Spark's."""
        return self._session

    @property
    def dtypes(self) -> list[Column]:
        """As Spark's."""
        return [*self.fields]

    @cached_property
    def schema(self) -> StructType:
        """The types, as Spark has them."""
        from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 - Spark

        return StructType([StructField(name, spark_type(kind)) for name, kind in self.fields])

    @cached_property
    def nothing(self) -> DataFrame:
        """Return an empty DataFrame with these columns, for Spark's analyzer."""
        rows = pa.table([pa.array([], arrow_of(kind)) for _, kind in self.fields], names=self.columns)
        return self._session.createDataFrame(with_chunks(rows), schema=self.schema)

    def selectExpr(self, *items: str) -> Frame:  # noqa: N802 - Spark's name
        """As Spark's."""
        return self.valued(items)

    def select(self, *names: str) -> Frame:
        """As Spark's, for names."""
        return self.valued([*map(attribute, names)])

    def where(self, condition: str) -> Frame:
        """As Spark's."""
        return self.kept(condition)

    def drop(self, *names: str) -> Frame:
        """As Spark's."""
        gone = {name.lower() for name in names}
        return self.valued([quoted(name) for name in self.columns if name.lower() not in gone])

    def withColumnRenamed(self, existing: str, new: str) -> Frame:  # noqa: N802 - Spark's name
        """As Spark's."""
        return self.toDF(*(new if name == existing else name for name in self.columns))

    def union(self, other: Frame) -> Frame:
        """As Spark's: by position."""
        return self.unionByName(other.toDF(*self.columns))

    def distinct(self) -> Frame:
        """As Spark's."""
        return self.grouped([*map(quoted, self.columns)], []) if self.columns else self.limit(1)

    def sortWithinPartitions(self, *terms: str) -> Frame:  # noqa: N802 - Spark's name
        """As Spark's, with a single partition."""
        return self.in_order(terms)

    def collect(self) -> list[Any]:
        """As Spark's."""
        from pyspark.sql import Row  # noqa: PLC0415 - Spark

        kind = Row(*self.columns)
        return [kind(*row.values()) for row in self.toArrow().to_pylist()]

    # -- implementation -----------------------------------------------------------------

    def _table(self) -> pa.Table:
        if isinstance(self._rows, Query):
            self._rows = self._rows.rows()
        return self._rows

    def _numbers(self, names: Sequence[str]) -> list[int] | None:
        """Return the places of columns among the fields; ``None`` if one of the names is not that of one column."""
        indices = {name.lower(): n for n, name in enumerate(self.columns)}
        at = [indices.get(name.lower(), -1) for name in names]
        return None if min(at, default=0) < 0 or len(indices) < len(self.fields) else at

    def _items(self, texts: Sequence[str]) -> Iterator[Item]:
        for text in texts:
            if text == "*":
                yield from (Item(name, Value(f"c{n}", kind)) for n, (name, kind) in enumerate(self.fields))
            elif (call := generator_of(text)) is not None:
                array = item(call.item, self.scope)
                yield Item(array.name, call.over(array.value))
            else:
                yield item(text, self.scope)

    def _selected(self, items: Sequence[Item], behind: str = "") -> Frame:
        if any(selected_item.value.type == "void" for selected_item in items):
            raise Untranslated("void")
        if not items:  # rows without columns; DuckDB has none
            return self._of("1 AS c0", behind, [])
        fields = [(selected_item.name, selected_item.value.type) for selected_item in items]
        if self._shared:
            self._table()
        if not behind and isinstance(self._rows, pa.Table):
            rows = selected(self._rows, [selected_item.value.sql for selected_item in items])
            if rows is not None:
                return Frame(self._session, fields, rows)
        texts = [selected_item.value.sql for selected_item in items]
        result = self._of(", ".join(called(text, n) for n, text in enumerate(texts)), behind, fields)
        if not behind and (below := self.query.projection) is not None:
            result._rows = replace(result.query, projection=below.over(texts))  # noqa: SLF001 - one of ours
        return result

    def _of(self, what: str = "*", behind: str = "", fields: Sequence[Column] | None = None) -> Frame:
        """Return a query over the rows: its select list, and the text after FROM."""
        rows = self.query
        sql = f"SELECT {what} FROM {rows}{behind}"  # noqa: S608 - translated
        return Frame(self._session, self.fields if fields is None else fields, rows.over(sql))

    def _compared(self, key: Item) -> Item:
        """Return what is compared of a group's key."""
        if is_collated(key.value.type):
            keys = self.scope.columns[key_of(key.name).lower()]
            key = Item(key.name, Value(keys.sql, kind_of_keys(key.value.type)))
        return group_key(key)

    def _shown(self, key: Item) -> Item:
        """Return what a group shows of its key: of equal texts with a collation, the least by its bytes.

        Spark shows the first text that it meets. The least does not depend on the order, and the least of partial
        results is the least of all.
        """
        shown = group_key(key)
        return (
            Item(key.name, replace(shown.value, sql=f"min({shown.value.sql})"))
            if is_collated(key.value.type)
            else shown
        )

    def _united(self, other: Frame) -> Frame:
        theirs = {name.lower(): (n, kind) for n, (name, kind) in enumerate(other.fields)}
        mine = {name.lower(): kind for name, kind in self.fields}
        if len(mine) != len(self.fields) or mine.keys() != theirs.keys():
            raise Untranslated(f"{', '.join(mine)} and {', '.join(theirs)}")
        kinds = {name: common(self._session, kind, theirs[name][1]) for name, kind in mine.items()}
        if any(kinds[name] != kind or kinds[name] != theirs[name][1] for name, kind in mine.items()):
            return widened(self, kinds)._united(widened(other, kinds))  # noqa: SLF001 - one of ours
        for one, beside in ((self, other), (other, self)):  # a few rows do not make a query copy many
            if one.known is None and one.sized < (beside.known or 0):
                one._table()  # noqa: SLF001 - one of ours
        both = self._rows, other._rows
        if isinstance(both[0], pa.Table) and isinstance(both[1], pa.Table):
            rows = stacked(both[0], both[1], [theirs[name][0] for name in mine])
            if rows is not None:
                return Frame(self._session, self.fields, rows)
        listed = ", ".join(called(f"c{theirs[name][0]}", n) for n, name in enumerate(mine))
        upper, lower = self.query, other.query
        sql = f"SELECT * FROM {upper} UNION ALL SELECT {listed} FROM {lower}"  # noqa: S608 - names of ours
        return Frame(self._session, self.fields, upper.over(sql, lower))

    def _beside(self, other: Frame) -> Frame:
        """Add the columns of another frame that it lacks, as NULL."""
        mine = {name.lower() for name in self.columns}
        more = [(name, kind) for name, kind in other.fields if name.lower() not in mine]
        nulls = (f", CAST(NULL AS {held_type(kind)}) AS c{n}" for n, (_, kind) in enumerate(more, len(mine)))
        return self._of(f"*{''.join(nulls)}", fields=[*self.fields, *more])


def common(session: SparkSession, one: str, other: str) -> str:
    """Return the type of a column of a union whose inputs have these types.

    Raises ``Untranslated`` if they have none in Spark, or one that frames do not have.
    """
    try:
        return wider(one, other)
    except Untranslated:  # Spark's rule is that of COALESCE
        return kind_of(session, Part("coalesce(`a`, `b`)", (("a", one), ("b", other))))


def widened(rows: Frame, kinds: Mapping[str, str]) -> Frame:
    """Return the rows with columns of these types; ``kinds``: by lower-case name.

    Raises ``Untranslated``, and ``Uncomputed`` for a value that is none of the type.
    """
    named = [(name, of, kinds[name.lower()]) for name, of in rows.fields]
    try:
        values = [Item(name, cast(Value(f"c{n}", of), kind)) for n, (name, of, kind) in enumerate(named)]
    except Untranslated:
        texts = [
            quoted(name) if of == kind else f"CAST({quoted(name)} AS {kind}) AS {quoted(name)}"
            for name, of, kind in named
        ]
        return rows.valued(texts).of_kinds({name: kind for name, _, kind in named})
    return rows._selected(values)  # noqa: SLF001 - one of ours


def attribute(name: str) -> str:
    """Return a column's name in the form for ``select`` and group keys: plain, in quotes, or a struct field."""
    return name if name == "*" or "`" in name or "." in name else quoted(name)
