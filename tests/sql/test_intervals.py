"""Interval literals with a precision, units after a difference, and texts with a character set."""

from __future__ import annotations

import pytest

from rowtime.core.errors import Refused
from rowtime.core.time import HOUR, MINUTE, SECOND
from rowtime.sql.generate import to_rowtime, to_spark
from rowtime.sql.intervals import duration_of
from rowtime.sql.script import parse_expression, parse_script


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("INTERVAL '1.500' SECOND(3)", 1_500_000),
        ("INTERVAL '12.5' SECOND(2, 3)", 12_500_000),
        ("INTERVAL '007' HOUR(1)", 7 * HOUR),
        ("INTERVAL '100' HOUR(3)", 100 * HOUR),
        ("INTERVAL '1:30.250' MINUTE TO SECOND(3)", 90_250_000),
        ("INTERVAL '10 12' DAY(2) TO HOUR", 252 * HOUR),
        ("INTERVAL '-1:30' MINUTE(2) TO SECOND(0)", -90 * SECOND),
        ("INTERVAL '0' SECOND(0, 0)", 0),
        ("INTERVAL '1.000' SECOND(1, 0)", SECOND),
        ("INTERVAL '2' MINUTES(9)", 2 * MINUTE),
    ],
)
def test_a_precision_is_checked_and_dropped(text: str, micros: int) -> None:
    made = parse_expression(text)
    assert duration_of(made) == micros
    assert "(" not in to_spark(made), "Spark has no precision of intervals"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("INTERVAL '1234' HOUR(3)", "HOUR(4)"),
        ("INTERVAL '1.2345' SECOND(2, 3)", "SECOND(1, 4)"),
        ("INTERVAL '100.5' SECOND(2, 3)", "SECOND(3, 1)"),
        ("INTERVAL '1:30.2505' MINUTE TO SECOND(3)", "SECOND(4)"),
        ("INTERVAL '100 12' DAY(2) TO HOUR", "DAY(3)"),
        ("INTERVAL '1' HOUR(2, 3)", "Leave the precision of HOUR out."),
    ],
)
def test_more_digits_than_the_precision_has_are_refused(text: str, hint: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_expression(text)
    (problem,) = refused.value.problems
    assert problem.code == "R101"
    assert hint in problem.hint
    assert problem.place is not None
    assert problem.place.text[problem.place.column - 1] == "("
    if "(" in hint:
        unit = hint.partition("(")[0]
        before, _, after = text.rpartition(unit)
        parse_expression(before + hint + after[after.index(")") + 1 :])


@pytest.mark.parametrize(
    ("text", "spark"),
    [
        ("(a - b) SECOND + c", "CAST(a - b AS INTERVAL SECOND) + c"),
        ("CAST((a - b) MINUTE AS INT)", "CAST(CAST(a - b AS INTERVAL MINUTE) AS INT)"),
        ("(a - b) HOUR(4) > c", "CAST(a - b AS INTERVAL HOUR) > c"),
        ("(a - b) DAY TO SECOND(3)", "CAST(a - b AS INTERVAL DAY TO SECOND)"),
        ("ABS((a - b) hours)", "ABS(CAST(a - b AS INTERVAL HOUR))"),
        ("(a + b) * 2", "(a + b) * 2"),
    ],
)
def test_a_unit_after_a_difference(text: str, spark: str) -> None:
    assert to_spark(parse_expression(text)) == spark
    assert to_spark(parse_expression(to_rowtime(parse_expression(text)))) == spark


@pytest.mark.parametrize("behind", [" FROM s", ", a FROM s"])
def test_in_a_select_list_a_unit_alone_is_a_name_as_in_spark(behind: str) -> None:
    (statement,) = parse_script(f"SELECT STREAM (a - b) second{behind}").statements
    assert statement.query.expressions[0].alias == "second"  # type: ignore[attr-defined]


@pytest.mark.parametrize("before", ["_UTF8", "_utf16", "_LATIN1", "N"])
def test_a_text_with_a_character_set_is_that_text(before: str) -> None:
    assert to_spark(parse_expression(f"{before}'caf\u00e9'")) == "'caf\u00e9'"


def test_two_slashes_in_a_text_or_a_comment_are_allowed() -> None:
    assert not parse_script("SELECT STREAM 'http://x' AS a -- see http://y\nFROM s /* http://z */").problems
