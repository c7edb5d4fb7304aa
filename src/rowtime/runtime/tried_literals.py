"""Tries calls with literals before the first tick: one that fails for every row is refused.

Spark reads modes, options and bounds with the first row. So its optimizer computes such a call on the driver, without a
job; the arguments that are no literals are samples of their types. A call fails by its literals if it fails for all
samples for the same reason: what Spark says of a value names the value, or another value is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from rowtime.expr.conditions import col
from rowtime.expr.many_rows import generator, has_aggregates, is_aggregate
from rowtime.expr.monotonicity import is_constant, non_deterministic
from rowtime.sql.generate import to_spark

_ROWS: Final = 7
_NUMBERS: Final = ("1", "0", "-1", "7", "2", "3", "5")
_TIMES: Final = ("'2024-01-02 10:00:00'", "'2024-01-02 10:00:01'", "'1969-12-31 23:59:59'")
_SAMPLES: Final[Mapping[str, Sequence[str]]] = {
    "string": ("'a'", "''", "'1'", "'{}'", "'<a>1</a>'", "'2024-01-02 10:00:00'", "'0000111122223333'"),
    "boolean": ("true", "false", "false", "true"),
    "date": ("'2024-01-02'", "'2024-01-03'", "'1969-12-31'"),
    "timestamp": _TIMES,
    "timestamp_ntz": _TIMES,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "float", "double"), _NUMBERS),
}
_LENGTHS: Final = (0, 1, 7, 2, 3, 5, 4)  # of arrays
_MAY_SKIP: Final = (exp.Case, exp.If, exp.Coalesce, exp.Connector, exp.Lambda, exp.TryCast, exp.Filter)
_SKIPPING: Final = ("COALESCE", "IF", "IFNULL", "NVL", "NVL2", "TRY_")
_NOT_TRIED: Final = (*_SKIPPING, "XPATH")  # Java's parser of XML writes to standard error
_KEPT: Final = (exp.DataType, exp.Identifier, exp.Var)
_OF_A_VALUE: Final = ("AES_CRYPTO_ERROR", "USER_RAISED_EXCEPTION")  # these messages do not say which value it is


@dataclass(frozen=True)
class _Trial:
    """A call, the same over samples, and Spark SQL of the arguments that these stand for, by their columns."""

    call: exp.Expr
    shape: exp.Expr
    arguments: Mapping[str, str]


def failing_literals(
    trees: Sequence[exp.Expr], rows: DataFrame, known: frozenset[str]
) -> Iterator[tuple[exp.Expr, str]]:
    """Yield the smallest calls in expressions over ``rows`` that fail by their literals, and why.

    ``known``: the functions of Spark; others are not called.
    """
    calls = (part for tree in trees for part in tree.walk(bfs=False) if _is_tried(part, known))
    trials = [_trial(call, f"a{n}_") for n, call in enumerate(calls)]
    texts = {name: text for trial in trials for name, text in trial.arguments.items()}
    schema = rows.selectExpr(*(f"{text} AS {name}" for name, text in texts.items())).schema if texts else ()
    kinds = {field.name: field.dataType.simpleString() for field in schema}
    trials = [trial for trial in trials if all(_samples(kinds[name]) for name in trial.arguments)]
    if not trials or _reason(rows.sparkSession, trials, kinds, range(_ROWS)) is None:
        return
    bad: list[exp.Expr] = []
    for trial in reversed(trials):  # inner calls come after the ones around them
        if any(part is inner for inner in bad for part in trial.call.walk()):
            continue
        reason = _same_reason(rows.sparkSession, trial, kinds)
        if reason is not None and not (trial.arguments and any(map(reason.__contains__, _OF_A_VALUE))):
            bad.append(trial.call)
            yield trial.call, reason


def failing_aggregates(trees: Sequence[exp.Expr], rows: DataFrame) -> Iterator[tuple[exp.Expr, str]]:
    """Yield the aggregates over ``rows`` that Spark cannot begin because of their literals, and why.

    What it begins with does not depend on a row: an empty sketch, or an empty list of the most frequent values.
    """
    for call in (part for tree in trees for part in tree.find_all(exp.Anonymous) if is_aggregate(part)):
        if any(is_constant(argument) for argument in call.expressions):
            try:
                plan = rows.selectExpr(to_spark(call))._jdf.queryExecution().analyzed()  # noqa: SLF001 - as below
            except PySparkException:  # the analysis of the whole expression says what is wrong, WITHIN GROUP included
                continue
            try:
                plan.aggregateExpressions().head().child().aggregateFunction().createAggregationBuffer()
            except PySparkException as wrong:
                yield call, str(wrong).strip().split("\n", 1)[0]
            except Py4JError:  # it has no such method: it begins with columns
                continue


def _same_reason(spark: SparkSession, trial: _Trial, kinds: Mapping[str, str]) -> str | None:
    """Return why a call fails for all samples; ``None`` if it does not, or for different reasons."""
    reason = _reason(spark, [trial], kinds, [0])
    others = range(1, _ROWS if trial.arguments and reason is not None else 1)
    return reason if all(_reason(spark, [trial], kinds, [number]) == reason for number in others) else None


def _is_tried(node: exp.Expr, known: frozenset[str]) -> bool:
    """Return True for a call of Spark's function with a literal, which each row computes."""
    operator = isinstance(node, exp.Binary | exp.Bracket) and not isinstance(node, exp.Dot | exp.PropertyEQ | exp.Slice)
    if isinstance(node, _MAY_SKIP) or not (operator or isinstance(node, exp.Func)):
        return False
    if isinstance(node, exp.Anonymous) and (node.name.lower() not in known or node.name.upper().startswith(_NOT_TRIED)):
        return False
    odd = (exp.Query, exp.Window, exp.Lambda, exp.Star, exp.PropertyEQ, exp.Alias)
    if any(isinstance(part, odd) or non_deterministic(part) for part in node.walk()):
        return False
    if is_aggregate(node) or has_aggregates(node) or generator(node) is not None:
        return False
    literals = [part for part in node.iter_expressions() if not isinstance(part, _KEPT) and is_constant(part)]
    return bool(literals) and not _may_be_skipped(node)


def _may_be_skipped(node: exp.Expr) -> bool:
    """Return True if another part of the expression decides whether it is computed."""
    above = node.parent
    while above is not None:
        skips = isinstance(above, exp.Anonymous) and above.name.upper().startswith(_SKIPPING)
        if skips or isinstance(above, _MAY_SKIP):
            return True
        above = above.parent
    return False


def _trial(call: exp.Expr, prefix: str) -> _Trial:
    shape, arguments = call.copy(), dict[str, str]()
    parts = [*shape.iter_expressions()]
    while parts:
        part = parts.pop()
        if isinstance(part, exp.Anonymous) and part.name.upper() in ("STRUCT", "NAMED_STRUCT"):  # it cannot fail
            parts += part.iter_expressions()
        elif not isinstance(part, _KEPT) and not is_constant(part):
            name = f"{prefix}{len(arguments)}"
            arguments[name] = to_spark(part)
            part.replace(col(name))
    return _Trial(call, shape, arguments)


def _reason(
    spark: SparkSession, trials: Sequence[_Trial], kinds: Mapping[str, str], numbers: Sequence[int]
) -> str | None:
    """Return why calls cannot be computed over some rows of samples; ``None`` if they can."""
    names = [name for trial in trials for name in trial.arguments]
    values = (", ".join(["0", *(_sample(kinds[name], n + m) for m, name in enumerate(names))]) for n in numbers)
    items = ", ".join(f"{to_spark(trial.shape)} AS x{n}" for n, trial in enumerate(trials))
    table = f"VALUES {', '.join(f'({row})' for row in values)} AS samples({', '.join(['one', *names])})"
    try:
        query = spark.sql(f"SELECT {items} FROM {table}")  # noqa: S608 - of samples
    except (PySparkException, Py4JJavaError):
        return None  # Spark does not take the samples for these types
    try:
        query._jdf.queryExecution().optimizedPlan()  # noqa: SLF001 - without a job
    except PySparkException as wrong:
        return str(wrong).strip().split("\n", 1)[0]
    except Py4JJavaError as wrong:
        return str(wrong.java_exception.getMessage()).strip().split("\n", 1)[0]
    return None


def _samples(kind: str) -> Sequence[str]:
    """Return literals of a type; none if there are no samples of it."""
    if kind.startswith("array<"):
        of = _SAMPLES.get(kind[len("array<") : -1], ())
        return [f"array({', '.join(of[n % len(of)] for n in range(length))})" for length in _LENGTHS] if of else ()
    return _NUMBERS if kind.startswith("decimal") else _SAMPLES.get(kind, ())


def _sample(kind: str, number: int) -> str:
    samples = _samples(kind)
    return f"CAST({samples[number % len(samples)]} AS {kind})"
