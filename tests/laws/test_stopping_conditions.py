"""AND, OR, CASE, IF and COALESCE stop from left to right, in every clause, in tasks too, and in any cut (SPEC 15.3)."""

from __future__ import annotations

import random
from itertools import product
from typing import TYPE_CHECKING

import pytest

from rowtime.operators.rows import conditions
from rowtime.testing.runner import play
from tests.laws.stopping_conditions import CLAUSES, ROWS, STREAMS, Clause, drawn, items, transcript
from tests.laws.test_shared_failures import PARTS, computed, told, with_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CUTS = ([len(items())], [len(STREAMS) * n for n in (9, 30, 31, len(ROWS) + 1)])
ALWAYS = ("parts of where", "join")
"""The clauses of the default run."""
SEEDS = range(2)


@pytest.fixture
def both_ways() -> None:
    """Replaces the choice of the laws: each test here goes both ways."""


def check(spark: SparkSession, clause: Clause, seed: int) -> None:
    chance = random.Random(f"{clause.name} {seed}")
    both = [drawn(chance) for _ in range(2)]
    case, session = transcript(clause.query(both)), with_jobs(spark)
    expected = clause.expected(both)
    for parts, cut in product(PARTS, CUTS):
        with computed(parts):
            rows, refused = told(play(session, case, cut))
        assert ([row["id"] for row in rows], len(refused)) == expected, (clause.query(both), parts)


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize(
    ("clause", "seed"),
    [
        pytest.param(one, n, id=f"{one.name} {n}", marks=[] if one.name in ALWAYS and not n else [pytest.mark.slow])
        for one in CLAUSES
        for n in SEEDS
    ],
)
def test_parts_are_tested_from_left_to_right(spark: SparkSession, clause: Clause, seed: int) -> None:
    check(spark, clause, seed)


@pytest.mark.parametrize(("where", "out", "refused"), [
    ("10 / p > 0 AND p <> 0", 32, 16), ("p <> 0 AND 10 / p > 0", 32, 0), ("p > 2 AND 10 / q > 0", 8, 8),
    ("10 / p > 0 OR q = 1", 32 + 4, 16), ("q = 1 OR 10 / p > 0", 16 + 24, 12),
])  # fmt: skip
@pytest.mark.usefixtures("both_ways")
def test_the_order_decides_which_rows_are_refused(spark: SparkSession, where: str, out: int, refused: int) -> None:
    for parts in PARTS:
        with computed(parts):
            rows, gone = told(play(with_jobs(spark), transcript(f"SELECT STREAM id FROM a WHERE {where}"), CUTS[1]))
        assert (len(rows), len(gone)) == (out, refused)


@pytest.mark.usefixtures("both_ways")
def test_a_planted_fault_is_found(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark stops at NULL, if it sees the parts of a condition."""
    monkeypatch.setattr(conditions, "whole", lambda text: text)
    sql = "SELECT STREAM id FROM a WHERE q > 2 AND 10 / p > 0"
    with computed(0):
        _, gone = told(play(with_jobs(spark), transcript(sql), [len(STREAMS) * (n + 1) for n in range(len(ROWS) + 1)]))
    assert len(gone) != len(ROWS) // 8
