"""Compares what the driver computes with Spark, over random expressions: values, types, and which rows fail.

``python -m conformance.engines --expressions 20000 --seed 1`` draws until so many expressions have a translation, and
returns 1 if one of them differs from Spark. Each is computed as in a tick: `Frame` over all rows, and if a row
fails, over the rows that do not. Spark tries each row (`frames.attempted`).
"""

from __future__ import annotations

import argparse
import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's name
from sqlglot import exp

from conformance.engine_expressions import drawn, drawn_aggregates, drawn_windows
from rowtime.frames import translated
from rowtime.frames.attempted import attempted
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import spark_type, type_text
from rowtime.frames.queries import SETTINGS, Uncomputed, restrict
from rowtime.frames.tables import with_chunks
from rowtime.frames.values import Value
from rowtime.frames.words import Untranslated
from rowtime.runtime.session import derive, new_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Maker = Callable[[DataFrame, Sequence[str]], DataFrame]

TOGETHER: Final = 200  # expressions over one table
FLOAT: Final = " as a float"
AGGREGATES: Final = 60  # aggregates, and
WINDOWS: Final = 30  # windows, beside every 800 expressions
_EVERY: Final = 4
FAILS: Final = "fails"
FAILURES: Final = (PySparkException, Py4JJavaError)
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """An expression whose value differs: for a row, for a group, or for all rows (``None``)."""

    text: str
    row: Row | None
    here: Any
    spark: Any

    def __str__(self) -> str:
        used = {name: of for name, of in (self.row or {}).items() if re.search(rf"\b{name}\b", self.text)}
        return f"{self.text}: {self.here!r} on the driver, {self.spark!r} in Spark, over {used}"


@dataclass
class Compared:
    """What was compared."""

    here: dict[str, Value] = field(default_factory=dict)
    """The translated expressions by their text."""
    differ: list[Difference] = field(default_factory=list)
    given_up: list[Difference] = field(default_factory=list)
    """What fails on the driver only, so that Spark computes the rows."""
    refused: int = 0
    """Expressions without a translation."""
    values: int = 0
    """Values that are the same in both."""
    failed: int = 0
    """Values that fail in both."""

    def add(self, other: Compared) -> None:
        """Add what was compared of other expressions."""
        self.here |= other.here
        self.differ += other.differ
        self.given_up += other.given_up
        self.refused += other.refused
        self.values += other.values
        self.failed += other.failed

    def note(self, text: str, row: Row | None, here: Any, spark: Any) -> None:
        """Compare two values, or `FAILS`."""
        if here == spark:
            self.failed, self.values = self.failed + (here == FAILS), self.values + (here != FAILS)
        else:
            found = Difference(text, row, here, spark)
            (self.given_up if here == FAILS else self.differ).append(found)


def compared(spark: SparkSession, table: pa.Table, kinds: Sequence[tuple[str, str]], texts: Sequence[str]) -> Compared:
    """Compare those of the expressions that the driver computes; the first column of the table numbers its rows."""
    frame, found = _begun(spark, table, kinds, texts)
    expected = _tried(_interpreted(spark), (frame, table), [*found.here], found)
    rows, connection = table.to_pylist(), restrict(duckdb.connect(config=SETTINGS))
    connection.register("t", frame._table())  # noqa: SLF001 - the names of columns are those in the translation
    for text, wanted in expected.items():
        for row, value, other in zip(rows, _values_here(connection, frame, text, found), wanted, strict=True):
            found.note(text, row, value, other)
    return found


def _begun(
    spark: SparkSession, table: pa.Table, kinds: Sequence[tuple[str, str]], texts: Iterable[str]
) -> tuple[Frame, Compared]:
    frame, found = Frame.of(spark, table, kinds), Compared()
    assert frame is not None
    for text in texts:
        try:
            of = translated.item(f"{text} AS x", frame.scope).value
        except Untranslated:
            found.refused += 1
            continue
        if of.type == "void":  # Spark computes NULL itself
            found.refused += 1
        else:
            found.here[text] = of
    return frame, found


def _values_here(connection: duckdb.DuckDBPyConnection, frame: Frame, text: str, found: Compared) -> Sequence[Any]:
    """Return the value of each row as in a tick; `FAILS` for those that fail."""
    try:
        return _column(frame.valued([f"{text} AS x"]).toArrow())
    except Uncomputed:
        pass
    tried = f"SELECT TRY(struct_pack(c0 := {found.here[text].sql})) IS NOT NULL AS ok FROM t"
    try:
        held = connection.sql(tried).to_arrow_table()["ok"]
    except duckdb.Error:  # what fails for every row fails before the first one
        return [_value_alone(frame, text, n) for n in range(frame.count())]
    try:
        values = iter(_column(frame.chosen(held).valued([f"{text} AS x"]).toArrow()))
    except Uncomputed:  # TRY skips what stands beside a NULL
        return [_value_alone(frame, text, n) for n in range(len(held))]
    return [next(values) if one else FAILS for one in held.to_pylist()]


def _value_alone(frame: Frame, text: str, row: int) -> Any:
    try:
        return _column(frame.taken(np.array([row])).valued([f"{text} AS x"]).toArrow())[0]
    except Uncomputed:
        return FAILS


@lru_cache(maxsize=1)
def _interpreted(spark: SparkSession) -> SparkSession:
    """Return a session that compiles nothing: thousands of expressions are computed for a few rows each."""
    session = derive(spark)
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session


def _in_spark(session: SparkSession, frame: Frame, table: pa.Table) -> DataFrame:
    """Return the rows as they were given: the frame may have changed them."""
    return session.createDataFrame(with_chunks(table), schema=frame.schema)


def _tried(
    session: SparkSession, given: tuple[Frame, pa.Table], texts: Sequence[str], found: Compared
) -> dict[str, list[Any]]:
    """Return the values in Spark by text, in the order of the rows; note texts that it refuses, and other types."""
    number, rows = given[0].columns[0], _in_spark(session, *given)

    def made(texts: Sequence[str]) -> dict[str, list[Any]]:
        attempts = (attempted(session, [text]) for text in texts)
        tried = rows.select(number, *(one.alias(f"x{n}") for n, one in enumerate(attempts)))
        kinds = [of.dataType.fields[0].dataType for of in tried.schema.fields[1:]]
        values = _nullable(tried).toArrow()
        order = pc.sort_indices(values[number])
        for text, kind in zip(texts, kinds, strict=True):
            _same_type(text, kind.simpleString(), found)
        return {
            text: [FAILS if of is None else of["c0"] for of in _column(values.select([f"x{n}"]).take(order), f"x{n}")]
            for n, text in enumerate(texts)
        }

    def refused(text: str, failed: Exception) -> list[Any] | None:
        found.differ.append(Difference(text, None, found.here[text].type, f"refused: {str(failed)[:300]}"))
        return None

    return _halved(texts, made, refused)


def _nullable(rows: DataFrame) -> DataFrame:
    """Return the rows with fields that may be NULL: PySpark cannot read a struct that is NULL and has others."""
    columns = [(of.name, type_text(of.dataType)) for of in rows.schema]
    return rows.select(*(F.col(name).cast(spark_type(kind)) if "STRUCT" in kind else name for name, kind in columns))


def _halved(
    texts: Sequence[str],
    made: Callable[[Sequence[str]], dict[str, list[Any]]],
    failed: Callable[[str, Exception], list[Any] | None],
) -> dict[str, list[Any]]:
    """Return what Spark makes of all texts, or of each half if it fails; ``failed``: of one alone."""
    if not texts:
        return {}
    try:
        return made(texts)
    except FAILURES as wrong:
        if len(texts) == 1:
            values = failed(texts[0], wrong)
            return {} if values is None else {texts[0]: values}
    half = len(texts) // 2
    return _halved(texts[:half], made, failed) | _halved(texts[half:], made, failed)


def _same_type(text: str, kind: str, found: Compared) -> None:
    if found.here[text].type != kind and spark_type(found.here[text].type).simpleString() != kind:
        found.differ.append(Difference(text, None, found.here[text].type, f"the type {kind}"))


def compared_groups(
    spark: SparkSession, table: pa.Table, kinds: Sequence[tuple[str, str]], texts: Sequence[str]
) -> Compared:
    """Compare aggregates over the groups ``g`` of a table, and over no rows."""
    frame, found = _begun(spark, table, kinds, texts)
    found.here = {text: of for text, of in found.here.items() if translated.parsed(text).find(exp.AggFunc)}
    given = frame.column("g").to_pylist()
    masks = [pa.array([of == group for of in given]) for group in [*dict.fromkeys(given), -1]]
    groups = [frame.chosen(mask) for mask in masks]
    here: dict[str, list[Any]] = {}
    for text in [*found.here]:
        values = _groups_here(frame, groups, text)
        if values is None:  # a FLOAT, or a type that cannot be a key
            del found.here[text]
            found.refused += 1
        else:
            here[text] = values
    session = _interpreted(spark)
    for n, (group, mask) in enumerate(zip(groups, masks, strict=True)):
        values = {text: here[text][n] for text in found.here}
        _compare_whole(session, (group, table.filter(mask)), values, found, lambda rows, texts: rows.selectExpr(*texts))
    return found


def _groups_here(frame: Frame, groups: Sequence[Frame], text: str) -> list[Any] | None:
    """Return the value of each group: of all in one query, if that does not fail, and of each alone."""
    values: list[Any] = []
    for group in groups:
        try:
            made = group.grouped([], [f"{text} AS x"])
            if made is None:
                return None
            values.append(_column(made.toArrow()))
        except Uncomputed:
            values.append(FAILS)
    try:
        made = frame.grouped(["g"], [f"{text} AS x"])
        assert made is not None
        together = made.toArrow().sort_by("g")
        values[:-1] = [[value] for value in _column(together)]  # so that these are compared
    except Uncomputed:
        pass
    return values


def compared_windows(
    spark: SparkSession, table: pa.Table, kinds: Sequence[tuple[str, str]], texts: Sequence[str]
) -> Compared:
    """Compare windows and series over all rows of a table; one that fails, fails for all."""
    frame, found = _begun(spark, table, kinds, texts)
    here: dict[str, Any] = {}
    for text in found.here:
        try:
            made = frame.valued(["n", f"{text} AS x"]).toArrow()
            here[text] = [*zip(made["n"].to_pylist(), _column(made), strict=True)]
            here[text].sort(key=lambda row: row[0])
        except Uncomputed:
            here[text] = FAILS

    def made_by_spark(rows: DataFrame, texts: Sequence[str]) -> DataFrame:
        return rows.selectExpr("n", *texts)

    series = {text: of for text, of in here.items() if text.lower().startswith("explode")}
    rest = {text: of for text, of in here.items() if text not in series}
    session = _interpreted(spark)
    for some in (rest, *({text: of} for text, of in series.items())):  # a select list may have one series
        _compare_whole(session, (frame, table), some, found, made_by_spark)
    return found


def _compare_whole(
    session: SparkSession, given: tuple[Frame, pa.Table], here: Mapping[str, Any], found: Compared, maker: Maker
) -> None:
    """Compare values of several rows, which fail together."""
    frame, table = given
    rows = _in_spark(session, frame, table).coalesce(1)

    def made(texts: Sequence[str]) -> dict[str, list[Any]]:
        result = maker(rows, [f"{text} AS x{n}" for n, text in enumerate(texts)])
        for text, of in zip(texts, result.schema.fields[-len(texts) :], strict=True):
            _same_type(text, of.dataType.simpleString(), found)
        values = _nullable(result).toArrow()
        if "n" not in values.column_names:
            return {text: _column(values, f"x{n}") for n, text in enumerate(texts)}
        values = values.sort_by("n")
        numbers = values["n"].to_pylist()
        return {text: [*zip(numbers, _column(values, f"x{n}"), strict=True)] for n, text in enumerate(texts)}

    def failed(text: str, wrong: Exception) -> list[Any] | None:
        there[text] = f"refused: {str(wrong)[:300]}" if isinstance(wrong, AnalysisException) else FAILS
        return None

    there: dict[str, Any] = {}
    computed = [text for text, of in here.items() if of != FAILS]
    there |= _halved(computed, made, failed)
    for text in here.keys() - computed:
        there |= _halved([text], made, failed)
    for text, value in here.items():
        coarse = _coarse if _STATISTIC.search(text) else lambda of: of
        if coarse(there[text]) != coarse(value) and (exact := _exact(text, frame)) != text:
            found.here[exact] = found.here[text]
            there[text] = _halved([exact], made, failed).get(exact, FAILS)
            del found.here[exact]
        if there[text] == FAILS and not frame.known:
            continue  # Spark folds a constant that fails, although no row needs it
        found.note(text, {"group": table.to_pylist()}, coarse(value), coarse(there[text]))


_STATISTIC: Final = re.compile(r"\b(?:std|stddev|var|corr|median|percentile|avg|mean)\w*\s*\(", re.IGNORECASE)
"""Aggregates whose last digits may differ."""


def _coarse(value: Any) -> Any:
    """Return values with nine digits of numbers of floating point, and without the sign of a zero."""
    if isinstance(value, list | tuple):
        return [*map(_coarse, value)]
    text = value if isinstance(value, str) else ""
    return f"{float(text.removesuffix(FLOAT)) + 0.0:.9g}{FLOAT}" if text.endswith(FLOAT) else value


def _exact(text: str, frame: Frame) -> str:
    """Return an expression in which sums and averages of whole numbers add exactly, as operators of rowtime do.

    Spark fails for each intermediate sum beyond BIGINT (`operators.rows.exact_sums`), and AVG adds numbers as DOUBLE.
    """

    def exact(node: exp.Expr) -> exp.Expr:
        call = _called(node)
        mean = isinstance(call, exp.Anonymous) and call.name.upper() == "MEAN"
        if not mean and not isinstance(call, exp.Sum | exp.Avg):
            return node
        given = call.expressions[0] if mean else call.this
        distinct = isinstance(given, exp.Distinct)
        value = given.expressions[0] if distinct else given
        if not frame.scope.value(value).whole:
            return node

        def of(function: type[exp.Sum | exp.Count], value: exp.Expr) -> exp.Expr:
            whole = node.copy()
            made = function(this=exp.Distinct(expressions=[value]) if distinct else value)
            _called(whole).replace(made)
            return made if node is call else whole

        total = of(exp.Sum, exp.cast(value.copy(), "DECIMAL(38, 0)", dialect="spark"))
        if isinstance(call, exp.Sum):
            return exp.cast(total, "BIGINT", dialect="spark")
        count = of(exp.Count, value.copy())
        return exp.paren(exp.Div(this=exp.cast(total, "DOUBLE", dialect="spark"), expression=count))

    parsed = translated.parsed(text)
    changed = parsed.copy().transform(exact)
    return text if changed == parsed else str(changed.sql("spark"))


def _called(node: exp.Expr) -> exp.Expr:
    """Return the call below FILTER and OVER."""
    while isinstance(node, exp.Window | exp.Filter):
        node = node.this
    return node


def _column(rows: pa.Table, name: str = "x") -> list[Any]:
    """Return values that are equal if they are the same: NaN is, both zeros are not, and times are numbers."""
    return [of for chunk in rows[name].chunks for of in _listed(chunk)]


def _listed(array: pa.Array) -> list[Any]:
    """Return Python's values; times as numbers, because some lie outside of Python's calendar."""
    kind = array.type
    if pa.types.is_temporal(kind):
        return array.cast(pa.int32() if pa.types.is_date(kind) else pa.int64()).to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_floating(kind):
        return [None if of is None else f"{of!r}{FLOAT}" for of in array.to_pylist()]
    if pa.types.is_struct(kind):
        parts = {part.name: _listed(array.field(n)) for n, part in enumerate(kind)}
        return [{name: of[n] for name, of in parts.items()} if held else None for n, held in _held(array)]
    if pa.types.is_list(kind):
        values, ends = _listed(array.values), array.offsets.to_pylist()
        return [values[ends[n] : ends[n + 1]] if held else None for n, held in _held(array)]
    if pa.types.is_map(kind):
        keys, values, ends = _listed(array.keys), _listed(array.items), array.offsets.to_pylist()
        pairs = [*map(list, zip(keys, values, strict=True))]
        return [pairs[ends[n] : ends[n + 1]] if held else None for n, held in _held(array)]
    return array.to_pylist()  # type: ignore[no-any-return]


def _held(array: pa.Array) -> Iterable[tuple[int, bool]]:
    return enumerate(array.is_valid().to_pylist())


def smallest(of: Compared, again: Callable[[Sequence[str]], Compared]) -> list[Difference]:
    """Return for each expression the smallest part of it that differs too."""
    if not of.differ and not of.given_up:
        return []
    parts = [[(one in of.differ, part) for part in _parts(one.text)] for one in (*of.differ, *of.given_up)]
    found = again([*dict.fromkeys(part for some in parts for _, part in some)])
    known = {(one.here != FAILS, one.text): one for one in (*reversed(found.differ), *reversed(found.given_up))}
    least = (next((known[part] for part in some if part in known), None) for some in parts)
    return [*{(one.here != FAILS, one.text): one for one in least if one is not None}.values()]


def _parts(text: str) -> list[str]:
    """Return the parts of an expression in parentheses, and itself, the shortest one first."""
    opened: list[int] = []
    found = {text}
    for n, sign in enumerate(text):
        if sign == "(":
            opened.append(n)
        elif sign == ")" and opened:
            found.add(text[opened.pop() : n + 1])
    return sorted(found, key=len)


def rules_of(texts: Iterable[str]) -> set[type | str]:
    """Return the rules of the translator that expressions use."""
    nodes = (node for text in texts for node in translated.parsed(text).walk())
    return {node.name.lower() if isinstance(node, exp.Anonymous) else type(node) for node in nodes}


def unused(texts: Iterable[str]) -> list[str]:
    """Return the rules of the translator that none of some expressions uses."""
    known = translated._RULES  # noqa: SLF001 - what it translates is not a fact for others
    return sorted(rule if isinstance(rule, str) else rule.__name__ for rule in known.keys() - rules_of(texts))


Drawn = tuple[pa.Table, list[tuple[str, str]], list[str]]
_WAYS: Final[Sequence[tuple[Callable[..., Compared], Callable[[str, int], Drawn], int, int]]] = (
    (compared, drawn, TOGETHER, 1),
    (compared_groups, drawn_aggregates, AGGREGATES, _EVERY),
    (compared_windows, drawn_windows, WINDOWS, _EVERY),
)
"""The ways to compare; what to draw; how much at once; and every how many rounds."""


def run(spark: SparkSession, seed: str, wanted: int, told: Callable[[str], None] = print) -> Compared:
    """Compare until so many expressions have a translation; differences are told as they are found."""
    whole, shapes, began = Compared(), set[str](), time.monotonic()
    number = 0
    while len(whole.here) < wanted:
        for way, draw, size, _ in (one for one in _WAYS if number % one[-1] == 0):
            table, kinds, texts = draw(f"{seed}/{number}", size)
            again = partial(way, spark, table, kinds)
            found = again(texts)
            for one in smallest(found, again):
                word = "LEFT TO SPARK" if one.here == FAILS else "DIFFERENT"
                shape = re.sub(r"\d+", "0", f"{word} {one.text}")
                if one.here != FAILS or shape not in shapes:
                    told(f"{word} {seed}/{number}: {one}")
                shapes.add(shape)
            whole.add(found)
        number += 1
        if number % 10 == 0:
            told(f"{line(whole)}; {time.monotonic() - began:.0f} s")
    return whole


def line(found: Compared) -> str:
    """Return what was compared, in a line."""
    differ, left = ({one.text for one in some} for some in (found.differ, found.given_up))
    return (
        f"{len(found.here):,} translated expressions, {found.values:,} equal values, {found.failed:,} that fail in "
        f"both, {len(left):,} expressions with rows left to Spark, {len(differ):,} that differ; "
        f"{found.refused:,} have no translation"
    )


def main() -> int:
    """Return 0 if nothing differs."""
    parser = argparse.ArgumentParser(prog="python -m conformance.engines", description=__doc__)
    parser.add_argument("--expressions", type=int, default=20_000, help="how many that have a translation")
    parser.add_argument("--seed", default="1", help="of the expressions and rows")
    asked = parser.parse_args()
    logging.getLogger("SQLQueryContextLogger").disabled = True  # it tells each failure at length
    spark = derive(new_spark([], master="local[2]", conf={"spark.ui.enabled": "false"}))
    spark.sparkContext.setLogLevel("OFF")
    found = run(spark, asked.seed, asked.expressions, lambda text: print(text, flush=True))
    print(line(found))
    left_out = unused(found.here)
    if left_out:
        print(f"never drawn: {', '.join(left_out)}")
    return int(bool(found.differ or left_out))


if __name__ == "__main__":
    sys.exit(main())
