"""Attempts: compute expressions that may fail for a row, and report the failure instead of ending the tick."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rowtime.core.columns import BROKEN, TRIED
from rowtime.frames.attempted import attempted
from rowtime.frames.attempts import tried
from rowtime.frames.local import is_local
from rowtime.frames.words import Untranslated
from rowtime.operators.contract import quoted
from rowtime.operators.rows.calls_apart import apart, calls_python
from rowtime.sql.generate import literal
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PLAIN = re.compile(r"`(?:[^`]|``)+`|\w+")

NamedSql = tuple[str, str]
"""Spark SQL of an expression, and its name in ``raw_record``."""


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


def with_attempts(rows: DataFrame, texts: Mapping[str, str]) -> DataFrame:
    """Return the rows with a column for each expression: a struct of its value ``c0``, or NULL if that fails."""
    if is_local(rows):
        try:
            return tried(rows, texts)
        except Untranslated:
            rows = rows.spark()
    rows, called = apart(rows, texts.values(), attempted)
    tries = {name: attempted(rows.sparkSession, [called.get(text, text)]) for name, text in texts.items()}
    return rows.withColumns(tries) if tries else rows


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
    attempts = with_attempts(rows, {name: text for text, name in names.items()})
    if tests:
        parts = [[text for text, _ in stage] for stage in stages]
        attempts = attempts.where(f"NOT ({_excluded(rows.sparkSession, parts, names, values_of)})")
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
