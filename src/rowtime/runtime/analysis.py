"""Asks Spark's analyzer about the expressions of a plan, before any tick: types, functions, and randomness.

Each expression is typed over an empty table with the columns of the operator's input; no job runs. A refusal of Spark
is reported like those of `check`: with the place in the script of the smallest refused part.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import AnalysisException, ParseException, PySparkException, PySparkValueError
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from rowtime.core.errors import Problem
from rowtime.expr.aggregates import orders_rows
from rowtime.expr.many_rows import has_aggregates
from rowtime.expr.readable import in_words, readable
from rowtime.expr.store_assignment import may_assign
from rowtime.frames.builtin import spark_functions
from rowtime.frames.typed import type_of
from rowtime.operators.contract import Operator
from rowtime.plan.bind.kept_months import MONTHS, MONTHS_HINT, UNTYPED, UNTYPED_HINT
from rowtime.plan.bind.pump_edge import PumpEdge
from rowtime.plan.clock_functions import fixed, trees_of
from rowtime.plan.program import Program
from rowtime.runtime.column_types import ColumnTypes
from rowtime.runtime.tried_literals import failing_aggregates, failing_literals
from rowtime.sql.generate import to_spark
from rowtime.sql.places import place_of

Wrong = AnalysisException | ParseException
_UNKNOWN = ("UNRESOLVED_COLUMN", "MISSING_ATTRIBUTES")
"""Hidden columns that the frame does not have: the binder has checked those of the user."""
_NO_COLLATION = "it is not known by which collation this text compares"
_COLLATE = "Write COLLATE behind it or a part of it, as in (a || b) COLLATE UNICODE_CI."
_MONTHS = re.compile(r"\binterval(?: year| month|[,>])")
_VOID = re.compile(r"[:<,]void\b")
_SOME_DAY = 1_700_000_000_000_000  # µs; any value will do: clock functions only need a type
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_LOGGER = PySparkLogger.getLogger("SQLQueryContextLogger")
"""PySpark writes each refusal to it, with Java's stack trace.

It is made once, on import: threads that make it at the same time may get a plain logger, which does not accept
PySpark's arguments, so that each error of Spark would become a ``TypeError``.
"""


def analysed(spark: SparkSession, program: Program) -> list[Problem]:
    """Return the problems (R107, R111) that Spark finds in a program's expressions, in the order of the script."""
    with quietly():
        analyst = _Analyst(spark, fixed(program, _SOME_DAY))
        problems = [problem for node in analyst.program.operators for problem in analyst.of_types(node)]
        problems = problems or [*analyst.all_problems()]
    unique = {(p.code, p.message, p.place): p for p in problems}
    return sorted(unique.values(), key=lambda p: (p.place.line, p.place.column) if p.place else (0, 0))


def misfits(program: Program, spark: SparkSession) -> list[Problem]:
    """Return the problems (R220) of pump assignments that no value of a type can fit; without a job."""
    types = ColumnTypes(spark)
    return [problem for edge in program.edges for problem in _misfits(edge, types, spark)]


def _misfits(edge: PumpEdge, types: ColumnTypes, spark: SparkSession) -> Iterator[Problem]:
    kinds = dict(zip(edge.node.emits().names, types.of(edge.node), strict=True))
    yield from edge.misfits(kinds)
    for column in edge.assigned:
        given = kinds.get(column.source, "")
        if given and may_assign(given, column.type) is None and not _spark_may(spark, given, column.type):
            yield edge.misfit(column, given)


def _spark_may(spark: SparkSession, given: str, target: str) -> bool:
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to the rules of assignment
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    kinds = (parser.parseDataType(text) for text in (given, target))
    return bool(jvm.org.apache.spark.sql.catalyst.expressions.Cast.canANSIStoreAssign(*kinds))


@contextmanager
def quietly() -> Iterator[None]:
    """Keep Spark's refusals off standard error: they are reported as problems."""
    if _speaks not in _LOGGER.filters:
        _LOGGER.addFilter(_speaks)
    before = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(before)


def _speaks(_record: logging.LogRecord) -> bool:
    return not _quiet.get()


def words_of(wrong: Exception) -> str:
    """Return the first line of Spark's message, without class names."""
    message = next((line for line in str(wrong).split("\n") if line.strip()), "")
    return in_words(message.split(" SQLSTATE", 1)[0].strip()) or type(wrong).__name__


@dataclass(frozen=True)
class _Frame:
    """An empty table, and the expressions over its columns."""

    table: DataFrame
    trees: list[exp.Expr]

    def wrong(self, trees: Sequence[exp.Expr]) -> Wrong | None:
        """Return why Spark refuses some expressions; ``None`` if it accepts them."""
        return self._judged(trees)[0]

    def repeats(self, trees: Sequence[exp.Expr]) -> bool:
        """Return whether Spark considers some expressions functions of their row; refused ones count as such."""
        return self._judged(trees)[1]

    def accepts(self, trees: Sequence[exp.Expr]) -> bool:
        """Return True if Spark accepts some expressions, and considers them functions of their row."""
        return self._judged(trees) == (None, True)

    def aggregates(self, tree: exp.Expr) -> bool:
        """Return whether Spark considers an expression an aggregate; a refused one is not."""
        try:
            plan = self._typed([tree])._jdf.queryExecution().analyzed()  # noqa: SLF001 - as above
        except (AnalysisException, ParseException):
            return False
        return bool(plan.nodeName() == "Aggregate")

    def unkept(self, trees: Sequence[exp.Expr]) -> tuple[str, str] | None:
        """Return which type among those of expressions that Spark accepts cannot be kept, and what to write instead.

        It is or contains an interval of months, or a NULL that has no type.
        """
        kinds = self._typed(trees)._jdf.schema().catalogString()  # noqa: SLF001 - in one call
        if _MONTHS.search(kinds) is not None:
            return MONTHS, MONTHS_HINT
        return (UNTYPED, UNTYPED_HINT) if _VOID.search(kinds) is not None else None

    def _judged(self, trees: Sequence[exp.Expr]) -> tuple[Wrong | None, bool]:
        """Return the results of `wrong` and `repeats`."""
        try:
            plan = self._typed(trees)._jdf.queryExecution().analyzed()  # noqa: SLF001 - Spark's own plan says it
        except (AnalysisException, ParseException) as wrong:
            return (None if (wrong.getCondition() or "").startswith(_UNKNOWN) else wrong), True
        except Py4JJavaError as wrong:  # Spark's parser throws what PySpark does not know
            return AnalysisException(str(wrong.java_exception.getMessage())), True
        try:
            plan.schema().json()
        except (PySparkException, Py4JJavaError):  # texts of different collations give one without any
            return AnalysisException(_NO_COLLATION), True
        return None, bool(plan.deterministic())

    def _typed(self, trees: Sequence[exp.Expr]) -> DataFrame:
        return self.table.selectExpr(*(f"{to_spark(tree)} AS x{n}" for n, tree in enumerate(trees)))


class _Analyst:
    """Types the expressions of a program, inputs first."""

    def __init__(self, spark: SparkSession, program: Program) -> None:
        self.program = program
        self._spark, self._types = spark, ColumnTypes(spark)

    @cached_property
    def _known(self) -> frozenset[str]:
        return spark_functions(self._spark)

    def of_types(self, node: Operator) -> Iterator[Problem]:
        """Yield problems of declared types that Spark does not know: those with unknown collations."""
        for column in () if node.inputs else node.emits().columns:
            if "COLLATE" in column.type.upper():
                try:
                    self._spark.range(0).selectExpr(f"CAST(NULL AS {column.type})")
                except (PySparkException, Py4JJavaError) as wrong:  # Spark's parser throws what PySpark does not know
                    message = wrong.java_exception.getMessage() if isinstance(wrong, Py4JJavaError) else words_of(wrong)
                    what = f"Spark refuses {node.name}.{column.name} {column.type}: {message.split(' SQLSTATE', 1)[0]}"
                    yield Problem("R107", what)

    def all_problems(self) -> Iterator[Problem]:
        """Yield Spark's refusals in all operators; those above a refused type, which has no name, have none."""
        nameless, problems = list[PySparkValueError](), list[Problem]()
        for node in self.program.operators:
            try:
                problems += self.problems(node)
            except PySparkValueError as unknown:
                nameless.append(unknown)
        if nameless and not problems:
            raise nameless[0]
        yield from problems

    def problems(self, node: Operator) -> Iterator[Problem]:
        """Yield Spark's refusals in one operator."""
        trees = [tree for tree in trees_of(node) if not isinstance(tree.unnest(), _PLAIN)]
        trees = self._not_of_the_driver(node, trees) if trees else []
        for frame in self._frames(node, trees) if trees else ():
            scalars = [tree for tree in frame.trees if not has_aggregates(tree)]
            for some in (scalars, [tree for tree in frame.trees if has_aggregates(tree)]):
                problems = [problem for tree in some for problem in self._of_users(tree, frame)]
                yield from problems or (self._of_all(some, frame) if some else ())

    def _of_all(self, trees: Sequence[exp.Expr], frame: _Frame) -> Iterator[Problem]:
        """Yield the problems of expressions that are all scalar, or all aggregates."""
        if not frame.accepts(trees):
            yield from (problem for tree in trees for problem in self._of(tree, frame))
        elif (odd := frame.unkept(trees)) is not None:
            what, hint = odd
            tree = next(tree for tree in trees if frame.unkept([tree]) == odd)
            yield Problem("R189", f"{readable(tree)} is {what}", place_of(self.program.text, tree), hint)
        else:
            yield from self._of_literals(trees, frame)

    def _not_of_the_driver(self, node: Operator, trees: Sequence[exp.Expr]) -> list[exp.Expr]:
        """Return the expressions that have no translation; the others mean the same in Spark."""
        tables = [({name.lower() for name in rows.columns}, rows) for rows in self._types.here(node)]

        def computed(tree: exp.Expr) -> bool:
            wanted = _columns_of(tree)
            rows = next((rows for names, rows in tables if wanted <= names), None)
            return rows is not None and type_of(rows, to_spark(tree)) is not None

        return [tree for tree in trees if not computed(tree)]

    def _of_users(self, tree: exp.Expr, frame: _Frame) -> Iterator[Problem]:
        """Yield problems of calls of users' functions: aggregates, and functions that are not deterministic.

        It is unknown what a tick could keep of such an aggregate.
        """
        odd: list[exp.Expr] = []
        for call in reversed(
            [candidate for candidate in tree.find_all(exp.Anonymous) if candidate.name.lower() not in self._known]
        ):
            name, place = call.name, place_of(self.program.text, call)
            if any(part is candidate for part in call.walk() for candidate in odd):
                continue  # the inner one has been reported
            if frame.aggregates(call):
                what = f"{name} is an aggregate of the session, which rowtime cannot split into ticks"
                hint = f"Write a function of the list of its values, {name}(COLLECT_LIST(x)), which has them in order."
                yield Problem("R107", what, place, hint)
                odd.append(call)
            elif not frame.repeats([call]):
                what = f"the function {name} is marked as not deterministic"
                hint = (
                    "If it gives the same result for the same arguments, register it without asNondeterministic(), "
                    f"or declare it: pipeline.deterministic('{name}')."
                )
                odd.append(call)
                yield Problem("R111", what, place, hint)

    def _of_literals(self, trees: Sequence[exp.Expr], frame: _Frame) -> Iterator[Problem]:
        """Yield problems of calls whose literals let them fail for every row."""
        calls = *failing_literals(trees, frame.table, self._known), *failing_aggregates(trees, frame.table)
        for call, reason in calls:
            what = f"{readable(call)} fails for every row: {in_words(reason.split(' SQLSTATE', 1)[0])}"
            yield Problem("R107", what, place_of(self.program.text, call))

    def _of(self, tree: exp.Expr, frame: _Frame) -> Iterator[Problem]:
        wrong = frame.wrong([tree])
        if wrong is not None:
            part, reason = _smallest(tree, frame, wrong)
            place = place_of(self.program.text, part)
            if _NO_COLLATION in str(reason):
                yield Problem("R107", _NO_COLLATION, place, _COLLATE)
                return
            written = place.text[place.column - 1 : place.column - 1 + place.length]
            what = re.sub(r'(?<=Cannot resolve )"[^"]*"', lambda _: f'"{written}"', words_of(reason))
            yield Problem("R107", f"Spark refuses this expression: {what}", place)
        elif (random := _random(tree, frame)) is not None:
            what = f"{readable(random)} gives another result each time it is called"
            hint = "The result of a stream may depend only on its input; use a column instead."
            yield Problem("R111", what, place_of(self.program.text, random), hint)

    def _frames(self, node: Operator, trees: Sequence[exp.Expr]) -> list[_Frame]:
        """Return the frames; each expression belongs to the first with its columns, or is rowtime's own."""
        tables = [rows.nothing for rows in self._types.here(node)]  # errors in between are found by themselves
        frames: list[tuple[set[str], _Frame]] = []
        for table in tables:
            with suppress(PySparkValueError):  # a refused type
                frames.append(({name.lower() for name in table.columns}, _Frame(table, [])))
        left = list(trees)
        while left:
            tree = left.pop(0)
            wanted = _columns_of(tree)
            frame = next((frame for names, frame in frames if wanted <= names), None)
            if frame is not None:
                frame.trees.append(tree)
            elif isinstance(tree, exp.Connector | exp.Paren | exp.Not):  # a part may do without a refused aggregate
                left += _parts(tree)
        return [frame for _, frame in frames]


_PLAIN = (exp.Column, exp.Literal, exp.Star, exp.Identifier, exp.Var, exp.DataType, exp.Lambda, exp.Query, exp.Interval)


def _columns_of(tree: exp.Expr) -> set[str]:
    return {column.name.lower() for column in tree.find_all(exp.Column) if not column.table}


def _parts(tree: exp.Expr) -> list[exp.Expr]:
    return [part for part in tree.iter_expressions() if not isinstance(part, _PLAIN)]


def _smallest(tree: exp.Expr, frame: _Frame, wrong: Wrong) -> tuple[exp.Expr, Wrong]:
    """Return the smallest part of an expression that is refused for the same reason, and Spark's message."""
    for part in _parts(tree):
        inner = frame.wrong([part])
        if inner is not None and inner.getCondition() == wrong.getCondition():
            return _smallest(part, frame, inner)
    return tree, wrong


def _random(tree: exp.Expr, frame: _Frame) -> exp.Expr | None:
    """Return the smallest part that Spark says is not a function of its row; ``None`` for no such part.

    Spark also says so of aggregates that depend on the order of rows; here they use stream order, and are
    deterministic.
    """
    if tree.find(exp.Window) or frame.repeats([tree]):
        return None
    inner = next((inner_part for part in _parts(tree) if (inner_part := _random(part, frame)) is not None), None)
    ordered = any(orders_rows(part) for part in tree.walk())
    return inner or (None if ordered else tree)
