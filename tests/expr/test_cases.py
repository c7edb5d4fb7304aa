"""The case files of expressions and statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

import rowtime as rt
from rowtime.plan.check import proof_of
from rowtime.runtime.session import derive
from rowtime.testing import verdicts
from rowtime.testing.runner import broken_promises
from tests.sql.case_files import load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_order_is_the_strongest_that_is_sound() -> None:
    assert verdicts.orders(load("monotonicity.yaml")) == []


def test_promises_are_kept_or_refused(spark: SparkSession) -> None:
    session, found = derive(spark), load("monotonicity.yaml")
    assert broken_promises(found, session) == []
    assert len(found["promises"]) == 4
    wrong = {"promises": [{"values": [2, 1], "promise": "kept", "why": ""}]}
    assert len(broken_promises(wrong, session)) == 1


def test_a_wrong_expectation_is_found() -> None:
    wrong = {"columns": [], "cases": [{"expression": "rowtime", "expect": "descending"}]}
    assert len(verdicts.orders(wrong)) == 1


def test_scalars_have_their_values(spark: SparkSession) -> None:
    assert verdicts.values(load("scalar_values.yaml"), derive(spark)) == []
    assert len(verdicts.values({"values": [{"expression": "FLOOR(2.5)", "value": 3}]}, derive(spark))) == 1


def test_ranges_come_from_declarations() -> None:
    over = "BIGINT ASCENDING CHECK ({})"
    assert rt.order_of("1 / v", {"v": over.format("v > 0")}) == "descending"
    assert rt.order_of("1 / v", {"v": over.format("v >= 0")}) == "none"
    assert rt.order_of("1 / v", {"v": over.format("v BETWEEN 5 AND 9")}) == "descending"
    assert rt.order_of("v * v", {"v": over.format("0 <= v")}) == "ascending"
    assert rt.order_of("v * v", {"v": over.format("v < -1 AND v > -9")}) == "descending"
    assert rt.order_of("5 / EXP(v)", {"v": "BIGINT ASCENDING"}) == "none", "EXP may come down to 0"
    assert rt.order_of("SQRT(v)", {"v": over.format("v < 100")}) == "none"


def test_a_proof_is_a_tree_with_one_line_a_rule() -> None:
    proof = proof_of("FLOOR(v / -5) + 3", {"v": "INT ASCENDING"})
    assert list(proof.lines()) == [
        "FLOOR(v / -5) + 3: descending (m + c keeps the order)",
        "  FLOOR(v / -5): descending (rounding to whole numbers keeps the direction)",
        "    v / -5: descending (m / c, c < 0 reverses the order)",
        "      v: ascending (as declared)",
        "      -5: constant (no column in it)",
        "  3: constant (no column in it)",
    ]
    assert proof.as_json()["parts"][0]["parts"][0]["rule"] == "m / c, c < 0 reverses the order"


def test_a_proof_that_fails_names_the_innermost_part() -> None:
    why = proof_of("FLOOR((v - w) TO DAY)", {"v": "TIMESTAMP ASCENDING", "w": "TIMESTAMP ASCENDING"}).failure()
    assert why.text.strip("()") == "v - w"
    assert why.rule == "one part ascends and the other descends, so the sum has no order"
