"""Joins with and without a condition: parsed as in sqlglot, in time proportional to their number."""

from __future__ import annotations

import time

import pytest
from sqlglot import parse_one

from rowtime.plan.program import compile_script
from rowtime.sql.dialect import Rowtime

JOINED = [
    "a JOIN b",
    "a JOIN b JOIN c",
    "a JOIN b ON x = y JOIN c ON y = z",
    "a JOIN b JOIN c ON y = z ON x = y",
    "a JOIN b JOIN c ON y = z",
    "a JOIN b JOIN c USING (k) JOIN d ON x = y",
    "a JOIN b JOIN c JOIN d ON p = q ON y = z ON x = y",
    "a JOIN b JOIN (c JOIN d ON p = q) ON x = y",
    "a JOIN b JOIN (c JOIN d JOIN e ON p = q ON r = s) ON x = y ON t = u",
    "a JOIN (SELECT k FROM c JOIN d JOIN e ON p = q ON r = s) AS b JOIN f ON x = y",
    "a LEFT JOIN b CROSS JOIN c JOIN d ON x = y",
    "a JOIN b ON x IN (SELECT k FROM c JOIN d JOIN e ON p = q ON r = s) JOIN f",
]


@pytest.mark.parametrize("joined", JOINED)
def test_joins_keep_their_meaning(joined: str) -> None:
    text = f"SELECT * FROM {joined}"
    assert parse_one(text, dialect=Rowtime).sql("spark") == parse_one(text, dialect="spark").sql("spark")


def test_many_joins_without_a_condition_are_read_at_once() -> None:
    began = time.process_time()
    program = compile_script(f"CREATE STREAM a (k INT); SELECT STREAM a.k FROM a {'JOIN a b ' * 200}")
    assert time.process_time() - began < 5
    assert [problem.code for problem in program.problems] == ["R151"]
