"""Expressions without a translation, which Spark computes for the different values of their columns.

The values that Spark has computed are kept for each session, so an expression over few different values costs a job in
the first tick only. An error of Spark is not reported here: another way finds the row that fails.

A process without a session has `Answers` instead; what they lack is `Wanted`, which ends the attempt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from rowtime.core.columns import ASKED_GROUP, ASKED_ONCE
from rowtime.core.errors import causes
from rowtime.core.worker_errors import raised_by_function
from rowtime.expr.many_rows import GENERATORS
from rowtime.frames.answers import ANSWERS, Part, Wanted
from rowtime.frames.attempted import TRIED_VALUE, attempted
from rowtime.frames.builtin import spark_functions
from rowtime.frames.collation_keys import key_column, kind_of_keys
from rowtime.frames.failures import of_a_value
from rowtime.frames.kinds import COLLATE, PLAIN, arrow_of, holds, spark_type, type_text
from rowtime.frames.queries import Uncomputed
from rowtime.frames.tables import Column, delivered, handed_out, with_chunks
from rowtime.frames.words import Untranslated
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession

    from rowtime.frames.frame import Frame

MOST_KEPT: Final = 50_000  # different values of an expression, and
_EXPRESSIONS: Final = 200  # expressions of a session
_BY_VALUE: Final = frozenset({*PLAIN} - {"float", "double"})  # types whose equal values are the same value
OTHER_ROWS: Final = (exp.AggFunc, exp.Window, exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.Query)
"""What is no function of one row."""
_SEVERAL: Final = {name.lower() for name in GENERATORS} - {"json_tuple"}
"""Functions that make several rows, whatever the parser calls them; JSON_TUPLE makes one."""
_CHANGING: Final = frozenset(
    {
        "rand",
        "randn",
        "uuid",
        "shuffle",
        "monotonically_increasing_id",
        "spark_partition_id",
        "input_file_name",
        "random",
    }
)
"""Functions that have another value for each row, or each time."""
_ONCE: Final = ((ASKED_ONCE, "bigint"),)
"""The column, always 0, of an expression without columns."""
_TIME: Final = re.compile(r"\b(\d{12,})L\b")
_TEXT: Final = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`")


@dataclass
class _Known:
    """What Spark has said of an expression: its type, and its values for those of one column."""

    kind: str
    given: pa.Array | None = None
    values: pa.Array | None = None


@dataclass
class _Session:
    known: dict[Part, _Known] = field(default_factory=dict)


_SESSIONS: Final[WeakKeyDictionary[Any, _Session]] = WeakKeyDictionary()


def part_of(session: SparkSession | None, item: str, fields: Sequence[Column]) -> tuple[str, Part]:
    """Return the name of an item ``expression AS name``, and its expression over columns.

    Raises ``Untranslated`` for an expression that is no function of the row.
    """
    return _part(session, item, fields, OTHER_ROWS)


def group_part_of(session: SparkSession | None, item: str, fields: Sequence[Column]) -> tuple[str, Part]:
    """Return the name of an item ``expression AS name``, and its expression over the columns of a group's rows.

    Raises ``Untranslated`` for an expression that is no function of such rows.
    """
    name, part = _part(session, item, fields, (exp.Window, exp.Query))
    return name, replace(part, groups=True)


def _part(
    session: SparkSession | None, item: str, fields: Sequence[Column], refused: tuple[type[exp.Expr], ...]
) -> tuple[str, Part]:
    tree = _tree(item)
    alias, text = named_item(item)
    others = {part.name.lower() for part in tree.find_all(exp.Anonymous)}
    names = others | {part.key for part in tree.find_all(exp.Func)}
    lower = [name.lower() for name, _ in fields]
    used = _words(text).intersection(lower)
    if (
        not alias
        or session is None
        or tree.find(*refused)
        or names & (_CHANGING | _SEVERAL)
        or len(set(lower)) < len(lower)
    ):
        raise Untranslated(item)
    calls = bool(others) and not functions_of(session).issuperset(others)
    columns = tuple(of for of, name in zip(fields, lower, strict=True) if name in used)
    return alias, Part(text, columns or _ONCE, calls=calls)


def named_item(item: str) -> tuple[str, str]:
    """Return the name of an item ``expression AS name``, empty if it has none, and its expression."""
    alias = _tree(item).alias
    text = item.removesuffix(f" AS {quoted(alias)}").removesuffix(f" AS {alias}")
    return alias if text != item else "", text


@lru_cache(maxsize=2048)
def _tree(item: str) -> exp.Expr:
    try:
        return sqlglot.parse_one(item, read="spark")
    except SqlglotError as wrong:
        raise Untranslated(item) from wrong


@lru_cache(maxsize=2048)
def _words(text: str) -> frozenset[str]:
    """Return the words of an expression that may be columns, in lower case; its tree may lack an argument.

    In the tree of DATE_TRUNC the unit is a word and no column, for example.
    """
    tokens = sqlglot.tokenize(text, read="spark")
    before, after = [None, *tokens], [*tokens[1:], None]
    return frozenset(
        token.text.lower()
        for left, token, right in zip(before, tokens, after, strict=False)
        if not token.token_type.name.endswith(("STRING", "NUMBER"))
        and (left is None or left.token_type not in (TokenType.DOT, TokenType.DCOLON))  # 1L is 1::L
        and (right is None or right.token_type != TokenType.L_PAREN)
    )


def functions_of(session: SparkSession | None) -> frozenset[str]:
    """Return the names of Spark's own functions, in lower case; raises ``Untranslated`` without a session."""
    answers = ANSWERS.get()
    if answers is not None:
        return answers.functions
    if session is None:
        raise Untranslated("there is nobody to ask")
    return spark_functions(session)


def with_values(rows: Frame, session: SparkSession, items: Sequence[str]) -> tuple[Frame, list[str]]:
    """Return rows with columns that Spark has computed, and the select list over them.

    Raises ``Untranslated`` if an item without a translation is no function of the row, and ``Uncomputed`` if it fails.
    """
    texts: list[str] = []
    parts: list[Part] = []
    for item in items:
        if item == "*":
            texts += map(quoted, rows.columns)
        elif rows.translates(item):
            texts.append(item)
        else:
            name, part = part_of(session, item, rows.fields)
            parts += [] if part in parts else [part]
            texts.append(f"{quoted(f'__spark{parts.index(part)}')} AS {quoted(name)}")
    for n, (kind, values) in enumerate(answered(session, dict.fromkeys(parts, rows))):
        rows = rows.with_column(f"__spark{n}", kind, values)
    return rows, texts


def answered(session: SparkSession, parts: Mapping[Part, Frame]) -> list[tuple[str, pa.Array]]:
    """Return the types and values of expressions over rows; raises ``Untranslated`` and ``Uncomputed``."""
    answers = ANSWERS.get()
    given: dict[Part, tuple[Frame, tuple[int, ...]]] = {}
    for part, rows in parts.items():
        same, numbers = (part, ()) if answers is None else of_any_tick(part, len(given))
        given[same] = rows, numbers
    unknown = [] if answers is None else [part for part in given if part not in answers.kinds]
    if unknown:
        raise Wanted(unknown)
    kinds = [kind_of(session, part) for part in given]
    tables = [_table(rows, part, numbers) for part, (rows, numbers) in given.items()]
    return [*zip(kinds, values_of(session, [*given], tables), strict=True)]


def of_any_tick(part: Part, nth: int) -> tuple[Part, tuple[int, ...]]:
    """Return a part with columns in place of the times (BIGINT) in its text, which change; and these times.

    ``nth``: its place among the parts of a select list, which may be alike but for their times.
    """
    outside = _TIME.findall(_TEXT.sub("", part.sql))
    numbers = _TIME.findall(part.sql)
    if not numbers or outside != numbers:
        return part, ()
    named = dict.fromkeys(numbers)
    columns = tuple((f"__number{nth}_{n}", "bigint") for n in range(len(named)))
    names = dict(zip(named, (name for name, _ in columns), strict=True))
    text = _TIME.sub(lambda of: names[of[1]], part.sql)
    return replace(part, sql=text, columns=(*part.columns, *columns)), tuple(map(int, named))


def _table(rows: Frame, part: Part, numbers: Sequence[int]) -> pa.Table:
    """Return the columns of a part; the last ones are ``numbers``."""
    numbers = (0, *numbers) if part.columns[:1] == _ONCE else numbers
    own = part.columns[: len(part.columns) - len(numbers)]
    columns = [delivered(rows.column(name), kind) for name, kind in own]
    columns += [pa.chunked_array([pa.repeat(pa.scalar(number, pa.int64()), rows.count())]) for number in numbers]
    columns += [rows.column(ASKED_GROUP)] if part.groups else []
    return pa.table(columns, names=part.names)


def kind_of(session: SparkSession, part: Part) -> str:
    """Return the type of an expression; raises ``Untranslated`` if Spark refuses it, or if frames have no such type."""
    kind = any_kind_of(session, part)
    if not holds(kind):
        raise Untranslated(kind)
    return kind


def any_kind_of(session: SparkSession, part: Part) -> str:
    """Return the type of an expression, which frames may not have; raises ``Untranslated`` if Spark refuses it."""
    return _known_of(session, part).kind


def _known_of(session: SparkSession, part: Part) -> _Known:
    answers = ANSWERS.get()
    if answers is not None:
        return _Known(answers.kind(part))
    expressions = _SESSIONS.setdefault(session, _Session()).known
    if part in expressions:
        return expressions[part]
    if part.key:
        return expressions.setdefault(part, _Known(kind_of_keys(part.columns[0][1])))
    from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark

    empty = pa.table([pa.array([], arrow_of(kind)) for _, kind in part.columns], names=part.names[: len(part.columns)])
    rows, value = _frame(session, part, empty), F.expr(part.sql).alias("v")
    try:
        kind = type_text((rows.agg(value) if part.groups else rows.select(value)).schema["v"].dataType)
    except PySparkException as refused:
        raise Untranslated(part.sql) from refused
    while len(expressions) >= _EXPRESSIONS:
        del expressions[next(iter(expressions))]
    expressions[part] = _Known(kind)
    return expressions[part]


def values_of(session: SparkSession, parts: Sequence[Part], tables: Sequence[pa.Table]) -> list[pa.Array]:
    """Return the values of expressions for the rows of tables of their columns, by one job; raises ``Uncomputed``."""
    known = [_known_of(session, part) for part in parts]
    wanted = [_wanted(of, part, table) for of, part, table in zip(known, parts, tables, strict=True)]
    answers = ANSWERS.get()
    computed = computed_by(session, parts, wanted) if answers is None else answers.of(parts, wanted)
    return [_taken(*each) for each in zip(known, parts, tables, wanted, computed, strict=True)]


def _is_by_value(part: Part) -> bool:
    if part.groups or len(part.columns) != 1:
        return False
    kind = part.columns[0][1]
    return kind in _BY_VALUE or kind.lower().startswith(f"string{COLLATE}")


def _wanted(known: _Known, part: Part, table: pa.Table) -> pa.Table:
    """Return the rows that Spark has to compute: those with new values."""
    if not _is_by_value(part):
        return table
    given = pc.unique(table.column(0))
    if known.given is not None:
        given = given.filter(pc.invert(pc.is_in(given, known.given)))
    return pa.table([given], names=table.column_names)


def _taken(known: _Known, part: Part, table: pa.Table, wanted: pa.Table, values: pa.Array) -> pa.Array:
    """Return the values for all rows; those of new values are kept."""
    if not _is_by_value(part):
        return values
    given = wanted.column(0).combine_chunks()
    if known.given is not None and known.values is not None:
        given, values = pa.concat_arrays([known.given, given]), pa.concat_arrays([known.values, values])
    if len(given) <= MOST_KEPT:
        known.given, known.values = given, values
    return values.take(pc.index_in(table.column(0).combine_chunks(), given))


def computed_by(session: SparkSession, parts: Sequence[Part], wanted: Sequence[pa.Table]) -> list[pa.Array]:
    """Return the values of expressions for rows of their columns; raises ``Uncomputed``.

    That is one job, and more if an aggregate that is tried fails for a group.
    """
    try:
        return _by_one_job(session, parts, wanted)
    except Uncomputed:
        if not any(part.tries_groups for part in parts):
            raise
    return [
        _in_halves(session, part, rows) if part.tries_groups else _by_one_job(session, [part], [rows])[0]
        for part, rows in zip(parts, wanted, strict=True)
    ]


def _in_halves(session: SparkSession, part: Part, rows: pa.Table) -> pa.Array:
    """Return the values of an aggregate for groups; NULL for those for which it fails."""
    count = part.count(rows)
    try:
        return _by_one_job(session, [part], [rows])[0]
    except Uncomputed as failed:
        if not any(map(of_a_value, causes(failed))):
            raise
        if count == 1:
            return pa.nulls(1, part.array_type(kind_of(session, part)))
    groups, middle = rows[ASKED_GROUP], count // 2
    last = rows.filter(pc.greater_equal(groups, middle))
    at = last.column_names.index(ASKED_GROUP)
    last = last.set_column(at, ASKED_GROUP, pc.subtract(last[ASKED_GROUP], middle))
    halves = rows.filter(pc.less(groups, middle)), last
    return pa.concat_arrays([_in_halves(session, part, half) for half in halves])


def _by_one_job(session: SparkSession, parts: Sequence[Part], wanted: Sequence[pa.Table]) -> list[pa.Array]:
    """Return the same, by one job."""
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # noqa: PLC0415 - Spark
    from pyspark.errors import PySparkException  # noqa: PLC0415 - Spark
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark

    kinds = [kind_of(session, part) for part in parts]
    frames = [
        _computed(session, part, rows).withColumnsRenamed({"v": f"v{n}"}).withColumn("__part", F.lit(n))
        for n, (part, rows) in enumerate(zip(parts, wanted, strict=True))
        if rows.num_rows
    ]
    if not frames:
        return [pa.array([], part.array_type(kind)) for part, kind in zip(parts, kinds, strict=True)]
    try:
        rows = handed_out(reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames))
    except (PySparkException, Py4JJavaError) as failed:
        foreign = isinstance(failed, Py4JJavaError) and not of_a_value(failed)
        if foreign or raised_by_function(str(failed)) is not None:
            raise
        raise Uncomputed(str(failed)) from failed
    rows = rows.sort_by([("__part", "ascending"), (ASKED_GROUP, "ascending")])
    of = {n: rows.filter(pc.equal(rows["__part"], n)) for n in range(len(parts))}
    return [
        part.values(of[n][f"v{n}"], kind) if of[n].num_rows else pa.array([], part.array_type(kind))
        for n, (part, kind) in enumerate(zip(parts, kinds, strict=True))
    ]


def _computed(session: SparkSession, part: Part, rows: pa.Table) -> DataFrame:
    """Return the values ``v`` of an expression, with the numbers of their rows or groups."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark

    if not part.groups:
        rows = rows.append_column(ASKED_GROUP, pa.array(np.arange(rows.num_rows)))
        return _frame(session, part, rows).select(ASKED_GROUP, _column(session, part).alias("v"))
    value = F.struct(F.expr(part.sql).alias(TRIED_VALUE)) if part.tries else F.expr(part.sql)
    return _frame(session, part, rows).coalesce(1).groupBy(ASKED_GROUP).agg(value.alias("v"))


def _column(session: SparkSession, part: Part) -> SparkColumn:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - Spark
    from pyspark.sql.types import StructField, StructType  # noqa: PLC0415 - Spark

    if part.key:
        return key_column(session, part)
    if not part.tries:
        return F.expr(part.sql)
    field = StructField(TRIED_VALUE, spark_type(kind_of(session, part)))  # PySpark refuses a NULL if it has no NULL
    return attempted(session, [part.sql]).cast(StructType([field]))


def _frame(session: SparkSession, part: Part, rows: pa.Table) -> DataFrame:
    from pyspark.sql.types import LongType, StructField, StructType  # noqa: PLC0415 - Spark

    fields = [StructField(name, spark_type(kind)) for name, kind in part.columns]
    fields += [StructField(name, LongType()) for name in rows.column_names[len(fields) :]]
    return session.createDataFrame(with_chunks(rows), schema=StructType(fields))
