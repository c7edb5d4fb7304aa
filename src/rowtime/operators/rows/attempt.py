"""Attempts: compute expressions that may fail for a row, and report the failure instead of ending the job.

In ANSI mode an expression that cannot be computed (a division by zero, a text that is not a number, a sum that
overflows its type) ends the whole job. Spark's own `TryEval` turns the failure of one row into NULL. SQL has no name
for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from rowtime.core.columns import BROKEN, ENTRY, TRIED
from rowtime.frames.local import is_local
from rowtime.operators.contract import functions as F
from rowtime.operators.contract import quoted
from rowtime.operators.rows.calls_apart import apart, calls_python
from rowtime.sql.generate import literal, to_stored
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_PLAIN = re.compile(r"`(?:[^`]|``)+`|\w+")

_ALWAYS = "exists(array(true), x -> x)"
"""Is true. Spark computes it for each row, because it takes no function of this kind for a constant."""

NamedSql = tuple[str, str]
"""Spark SQL of an expression, and its name in ``raw_record``."""


def attempted(spark: SparkSession, expressions: Sequence[str]) -> Column:
    """Return a struct of the values of Spark SQL ``expressions``; NULL if one fails, independent of the others.

    Spark computes what stands twice in a query (also the operand of BETWEEN) before the rest, outside of an attempt. It
    leaves what stands in a branch of an IF where it is.
    """
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - `check` does without Spark

    inside = ", ".join(f"'c{n}', {guarded(text)}" for n, text in enumerate(expressions))
    jvm: Any = spark._jvm  # noqa: SLF001 - PySpark has no public way to a Spark expression
    parser = spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001
    tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(parser.parseExpression(f"named_struct({inside})"))
    value = Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(tried))
    return F.when(F.expr(_ALWAYS), value).otherwise(None)


def all_computed(rows: DataFrame, expressions: Iterable[str]) -> DataFrame:
    """Return the rows with all expressions computed for each row, so that they fail now.

    Spark skips values that nothing compares, and rows that a filter above drops. It moves no filter below a random
    expression.
    """
    expressions = list(expressions)
    if is_local(rows) and rows.can(*expressions):
        return rows.computed(expressions)
    hashes = ", ".join(f"CAST({text} AS STRING)" for text in expressions)
    return rows.where(f"xxhash64({hashes}) >= {-(2**63 - 1)}L - 1L OR rand() < 0") if hashes else rows


def judged(  # noqa: PLR0913 - the conditions and values of rows
    rows: DataFrame,
    stages: Sequence[Sequence[NamedSql]],
    values: Mapping[str, str],
    demands: Iterable[NamedSql],
    kept: Collection[str],
    broken: Sequence[NamedSql] = (),
) -> DataFrame:
    """Return the rows that no test excludes, with ``values`` by name and ``kept`` columns; `BROKEN`: the row's failure.

    ``stages``: conditions that filter one after the other, each as the tests that AND joins. They stop from left to
    right: the first one that is false excludes a row; it fails if one before that cannot be computed. NULL excludes it
    at the end of the stage, or before a Python function, which is called for no such row. Of the rest a row fails if
    one of the ``demands`` cannot be computed, or if one of the conditions ``broken`` holds. A value that fails is NULL.
    """
    tests = [test for stage in stages for test in stage]
    demands = list(demands)
    texts = dict.fromkeys([*(text for text, _ in tests), *values.values(), *(text for text, _ in demands)])
    names = {t: f"{TRIED}{n}" for n, t in enumerate(text for text in texts if not _PLAIN.fullmatch(text))}
    values_of = {text: f"{names[text]}.c0" if text in names else text for text in texts}
    cases = [f"WHEN {condition} THEN {literal(name)}" for condition, name in broken]
    required = dict([*tests, *demands])
    cases += [f"WHEN {names[text]} IS NULL THEN {literal(name)}" for text, name in required.items() if text in names]
    columns = [f"{values_of[text]} AS {quoted(name)}" for name, text in values.items()]
    rows, called = apart(rows, names, attempted)
    spark = rows.sparkSession
    attempts = rows.withColumns({name: attempted(spark, [called.get(text, text)]) for text, name in names.items()})
    if tests:
        parts = [[text for text, _ in stage] for stage in stages]
        attempts = attempts.where(f"NOT ({_excluded(spark, parts, names, values_of)})")
    first_failed = f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS STRING)"
    return attempts.selectExpr(*columns, *map(quoted, kept), f"{first_failed} AS {BROKEN}")


def _excluded(
    spark: SparkSession, stages: Sequence[Sequence[str]], names: Mapping[str, str], values_of: Mapping[str, str]
) -> str:
    """Return the condition that one of the tests excludes a row."""
    branches: list[str] = []
    for stage in stages:
        hold = [f"NOT coalesce({values_of[text]}, false)" for text in stage]
        for n, text in enumerate(stage):
            if n and "(" in text and calls_python(spark, parse_expression(text)):
                branches.append(f"WHEN {' OR '.join(hold[:n])} THEN true")
            branches += [f"WHEN {names[text]} IS NULL THEN false"] if text in names else []
            branches.append(f"WHEN NOT {values_of[text]} THEN true")
        branches += [f"WHEN {' OR '.join(hold)} THEN true"] if hold else []
    return f"CASE {' '.join(branches)} ELSE false END"


_BUILDS = re.compile(
    r"map(?:_from_arrays|_from_entries|_concat)?\s*\(|transform_keys\s*\(|str_to_map\s*\(", re.IGNORECASE
)


def guarded(text: str) -> str:
    """Return Spark SQL that fails before a map gets a key that is NULL or comes twice.

    Spark's function that builds a map keeps the keys before such a key: for all rows that follow, it is spoilt.
    """
    if not _BUILDS.search(text):
        return text
    root = exp.paren(parse_expression(text), copy=False)
    for call in reversed([*root.find_all(exp.Anonymous)]):  # a nested call comes after the one around it
        name = call.name.lower()
        keys = _keys(name, [to_stored(given) for given in call.expressions], call)
        if keys and not (name == "map" and (isinstance(call.parent, exp.Bracket) or _has_plain_keys(call))):
            good = f"size(array_distinct({keys})) = size({keys}) AND NOT exists({keys}, {ENTRY} -> {ENTRY} IS NULL)"
            fails = "raise_error('a key of a map is NULL or comes twice')"
            tested = f"CASE WHEN {keys} IS NULL OR {good} THEN {to_stored(call)} ELSE {fails} END"
            call.replace(parse_expression(tested))
    return to_stored(root.this)


def _has_plain_keys(call: exp.Anonymous) -> bool:
    """Return True if the keys of a map are different literal texts, as in options, which have to be a map as it is.

    In brackets, Spark only compares the keys.
    """
    keys = call.expressions[::2]
    plain = all(isinstance(key, exp.Literal) and key.is_string for key in keys)
    return plain and len({key.name for key in keys}) == len(keys)


def _keys(name: str, given: Sequence[str], call: exp.Anonymous) -> str:
    """Return the keys of a map that a call builds, as an array; empty for another call."""
    keys = ""
    if name == "map" and given:
        keys = f"array({', '.join(given[::2])})"
    elif name == "map_from_arrays":
        keys = given[0]
    elif name == "map_concat" and given:
        keys = f"flatten(array({', '.join(f'map_keys({one})' for one in given)}))"
    elif name == "map_from_entries":  # the first field may have any name; a map of one entry has its key
        key = f"map_keys(map_from_entries(array({ENTRY})))[0]"
        keys = f"IF(exists({given[0]}, {ENTRY} -> {ENTRY} IS NULL), NULL, transform({given[0]}, {ENTRY} -> {key}))"
    elif name == "str_to_map":
        pairs, values = (*given[1:], *("','", "':'")[len(given) - 1 :])
        keys = f"transform(split({given[0]}, {pairs}), {ENTRY} -> split({ENTRY}, {values}, 2)[0])"
    elif name == "transform_keys" and isinstance(call.expressions[1], exp.Lambda):
        keys = f"transform(map_entries({given[0]}), {ENTRY} -> {_over_entry(call.expressions[1])})"
    return keys


def _over_entry(function: exp.Lambda) -> str:
    """Return a function of key and value as an expression over `ENTRY`."""
    fields = dict(zip((name.name for name in function.expressions), ("key", "value"), strict=False))

    def instead(node: exp.Expr) -> exp.Expr:
        of_name = isinstance(node.parent, exp.Column) or (isinstance(node.parent, exp.Dot) and node.arg_key != "this")
        named = isinstance(node, exp.Identifier) and not of_name and node.name in fields
        return parse_expression(f"{ENTRY}.{fields[node.name]}") if named else node

    return to_stored(exp.paren(function.this.copy(), copy=False).transform(instead))
