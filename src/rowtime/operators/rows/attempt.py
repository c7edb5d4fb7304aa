"""Attempts: compute expressions that may fail for a row, and report the failure instead of ending the tick."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from rowtime.core.columns import BROKEN, TRIED
from rowtime.frames.called import calls_in, tried_with_calls
from rowtime.frames.catalyst import named_item
from rowtime.frames.queries import Uncomputed
from rowtime.operators.contract import Tick, quoted
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

_PLAIN = re.compile(r"`(?:[^`]|``)+`|\w+")

NamedSql = tuple[str, str]
"""Spark SQL of an expression, and its name in ``raw_record``."""


def all_computed(rows: Frame, expressions: Iterable[str]) -> Frame:
    """Return the rows with all expressions computed for each row, so that they fail now.

    Spark skips values that nothing compares, and rows that a filter above drops. It moves no filter below a random
    expression.
    """
    expressions = list(expressions)
    return rows.computed(expressions)


def with_attempts(rows: Frame, texts: Mapping[str, str]) -> Frame:
    """Return the rows with a column for each expression: a struct of its value ``c0``, or NULL if that fails."""
    return tried_with_calls(rows, texts)


def selected(tick: Tick, rows: Frame, texts: Sequence[str]) -> Frame:
    """Return a select list over rows, ``expression AS name`` or ``*``, of which none fails in Spark.

    If a tick examines its rows, Spark computes what DuckDB cannot. Raises ``Uncomputed``.
    """
    result = rows.selectExpr(*texts)
    if not tick.trying:
        return result
    try:
        result.count()
    except Uncomputed:
        plain = [name for text in texts for name in (map(quoted, rows.columns) if text == "*" else [text])]
        items = [named_item(text) for text in plain]
        names = {text: f"{TRIED}{n}" for n, (_, text) in enumerate(items) if not _PLAIN.fullmatch(text)}
        attempts = with_attempts(rows, {name: text for text, name in names.items()})
        fails = " OR ".join(f"{name} IS NULL" for name in names.values())
        if attempts.where(fails).count():
            raise
        values = ((name, f"{names[text]}.c0" if text in names else text) for name, text in items)
        return attempts.selectExpr(*(f"{text} AS {quoted(name)}" if name else text for name, text in values))
    return result


def judged(  # noqa: PLR0913 - the conditions and values of rows
    rows: Frame,
    stages: Sequence[Sequence[NamedSql]],
    values: Mapping[str, str],
    demands: Iterable[NamedSql],
    kept: Collection[str],
    broken: Sequence[NamedSql] = (),
) -> Frame:
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
    attempts, earlier = rows, list[str]()
    for some, computed in _passes(rows, [[text for text, _ in stage] for stage in stages], texts):
        now = {names[text]: text for text in computed if text in names}
        attempts = with_attempts(attempts, now)
        if some:
            attempts = attempts.where(f"NOT ({_excluded(some, earlier, names, values_of)})")
        earlier += now
    first_failed = f"CASE {' '.join(cases)} END" if cases else "CAST(NULL AS STRING)"
    return attempts.selectExpr(*columns, *map(quoted, kept), f"{first_failed} AS {BROKEN}")


def _passes(
    rows: Frame, stages: Sequence[Sequence[str]], texts: Iterable[str]
) -> list[tuple[list[list[str]], list[str]]]:
    """Return tests in parts, each with the ``texts`` that may be computed for the rows that no part before excludes.

    A part begins with a test that calls a function of the user, and such calls behind all tests have a part of theirs.
    """
    remaining = dict.fromkeys(texts)
    unknown = [text for text in remaining if not rows.translates(text)]
    calling = {text for text in unknown if calls_in(rows.sparkSession, text)}
    passes: list[list[list[str]]] = [[]]
    for stage in stages:
        passes[-1].append([])
        for text in stage:
            if text in calling and any(passes[-1]):
                passes.append([[]])
            passes[-1][-1].append(text)
    tests = [[some for some in one if some] for one in passes if any(one)]
    computed = [[text for some in one for text in some if remaining.pop(text, text) is None] for one in tests]
    if computed and calling.isdisjoint(remaining):
        computed[-1] += remaining
    elif remaining:
        tests, computed = [*tests, []], [*computed, [*remaining]]
    return [*zip(tests, computed, strict=True)]


def _excluded(
    stages: Sequence[Sequence[str]], earlier: Iterable[str], names: Mapping[str, str], values_of: Mapping[str, str]
) -> str:
    """Return the condition that one of the tests excludes a row; a row for which an ``earlier`` one fails stays."""
    branches = [f"WHEN {name} IS NULL THEN false" for name in earlier]
    for stage in stages:
        for text in stage:
            branches += [f"WHEN {names[text]} IS NULL THEN false"] if text in names else []
            branches.append(f"WHEN NOT {values_of[text]} THEN true")
        hold = [f"NOT coalesce({values_of[text]}, false)" for text in stage]
        branches.append(f"WHEN {' OR '.join(hold)} THEN true")
    return f"CASE {' '.join(branches)} ELSE false END"
