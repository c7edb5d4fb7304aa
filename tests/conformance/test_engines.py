"""Random expressions have the values, types and failures of Spark on the driver; a wrong translation is found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from sqlglot import exp

from conformance import engines
from conformance.engine_expressions import drawn, drawn_aggregates, drawn_windows
from rowtime.frames import translated
from rowtime.frames.values import Scope, Value
from rowtime.frames.words import Untranslated
from tests.frames import frame_faults as faults

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FEW, MANY = 250, int(os.environ.get("EXPRESSIONS", "3000"))


@pytest.fixture
def forget() -> Iterator[None]:
    """Forget translations from before a fault, and its own."""

    def forgotten() -> None:
        translated._scope.cache_clear()

    forgotten()
    yield
    forgotten()


def test_random_expressions_are_those_of_spark(spark: SparkSession) -> None:
    told: list[str] = []
    found = engines.run(spark, "fast", FEW, told.append)
    assert not found.differ, told
    assert min(len(found.here), found.refused, found.failed) >= FEW // 3
    assert found.values >= 10 * FEW


@pytest.mark.slow
def test_many_random_expressions_are_those_of_spark(spark: SparkSession) -> None:
    """``EXPRESSIONS`` sets another number, ``python -m conformance.engines`` takes another seed."""
    told: list[str] = []
    found = engines.run(spark, "many", MANY, told.append)
    assert not found.differ, told
    assert not engines.unused(found.here)


def test_each_rule_of_the_translator_is_drawn() -> None:
    """A new rule needs a form in `conformance.engine_expressions`."""
    held: list[str] = []
    for draw, times, size in ((drawn, 8, 200), (drawn_aggregates, 5, 200), (drawn_windows, 1, 100)):
        for number in range(times):
            _, kinds, texts = draw(f"rules/{number}", size)
            scope = translated.scope_of_fields(tuple(kinds))
            held += [text for text in texts if _has_translation(text, scope)]
    assert engines.unused(held) == []
    assert "Mod" in engines.unused(text for text in held if "%" not in text and "mod(" not in text.lower())


def _has_translation(text: str, scope: Scope) -> bool:
    try:
        translated.item(f"{text} AS x", scope)
    except Untranslated:
        return False
    return True


def what_overflows_is_null(patch: pytest.MonkeyPatch) -> None:
    faults._rule(patch, exp.Add, lambda sql: f"TRY({sql})")


def a_literal_has_one_digit_more(patch: pytest.MonkeyPatch) -> None:
    def rule(node: exp.Expr, scope: Scope) -> Value:
        found = translated.SCALARS[exp.Mul](node, scope)
        return Value(found.sql, "double" if found.type.startswith("decimal") else found.type)

    patch.setitem(translated._RULES, exp.Mul, rule)  # type: ignore[arg-type]


def minutes_are_hours(patch: pytest.MonkeyPatch) -> None:
    faults._rule(patch, exp.Minute, lambda sql: sql.replace("minute(", "hour("))


TEXTS = {
    what_overflows_is_null: (engines.compared, drawn, ["c0 + c0", "c2 + 1", "c3 + c3 > 0"]),
    a_literal_has_one_digit_more: (engines.compared, drawn, ["c6 * c7"]),
    minutes_are_hours: (engines.compared, drawn, ["minute(c11)"]),
    faults.remainders_are_negative: (engines.compared, drawn, ["pmod(c2, 7)"]),
    faults.a_division_rounds_down: (engines.compared, drawn, ["c2 DIV 2"]),
    faults.sums_wrap_around: (engines.compared_groups, drawn_aggregates, ["sum(c3)"]),
    faults.nulls_are_last_in_windows: (engines.compared_windows, drawn_windows, ["row_number() OVER (ORDER BY c2, n)"]),
}


@pytest.mark.usefixtures("forget")
@pytest.mark.parametrize("plant", TEXTS, ids=[plant.__name__ for plant in TEXTS])
def test_a_wrong_translation_is_found(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    way, draw, texts = TEXTS[plant]
    table, kinds, _ = draw("fault", 0)
    assert not way(spark, table, kinds, texts).differ
    plant(monkeypatch)
    translated._scope.cache_clear()
    assert way(spark, table, kinds, texts).differ


@pytest.mark.usefixtures("forget")
def test_a_difference_is_told_by_its_smallest_part(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    table, kinds, _ = drawn("smallest", 0)
    minutes_are_hours(monkeypatch)

    def again(texts: list[str]) -> engines.Compared:
        return engines.compared(spark, table, kinds, texts)

    found = again(["coalesce((c1 + (minute(c11))), 0) > 3", "(c2 = 1)"])
    [least] = engines.smallest(found, again)  # type: ignore[arg-type]
    assert least.text == "(minute(c11))"
    assert "'c11': datetime" in str(least)
