"""The event lists of other systems, with one tick per item, in one tick, and with random cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import END
from rowtime.runtime.session import derive
from rowtime.testing.runner import Outcome, cuts, play
from tests.event_cases import EventCase, load, plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = [*load("streaminsight"), *load("trill")]
ALWAYS = ("I03",)
"""What the default tests try."""


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=[] if case.name in ALWAYS else [pytest.mark.slow]) for case in CASES],
)
def test_an_event_list_gives_its_expected_output(spark: SparkSession, case: EventCase) -> None:
    _, cut = list(cuts(case.transcript))[-1]
    judge(case, play(derive(spark), case.transcript, cut))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_an_event_list_gives_its_expected_output_however_it_is_cut(spark: SparkSession, case: EventCase) -> None:
    for _, cut in cuts(case.transcript):
        judge(case, play(derive(spark), case.transcript, cut))


def judge(case: EventCase, found: Outcome) -> None:
    """Rows, their order if it matters, their times of output, refusals, and the bounds between."""
    expected = case.case["expected"]
    if case.query.get("part"):
        expected = expected[case.query["part"]]
    if isinstance(expected, dict):
        assert {position for position, _ in found.rejected} == set(expected["rejected"])
        expected = expected["accepted"]
    wanted = [row for row in expected if row.get("kind") not in ("cti", "punctuation")]
    got = [(tick, plain(case, row)) for tick, row in found.rows]
    if wanted and "after" in wanted[0]:
        _steps(found, wanted, got)
        return
    rows, wanted = [row for _, row in got], [_comparable(row) for row in wanted]
    if case.query.get("payload") == "bag":  # the list does not define the order in a payload
        wanted = [{**row, "payload": sorted(row["payload"])} for row in wanted]
    if case.case["expected_order"] == "set" or case.query.get("order") == "set":
        rows, wanted = sorted(rows, key=str), sorted(wanted, key=str)
    assert rows == wanted
    bounds = [row["t"] for row in expected if row.get("kind") in ("cti", "punctuation")]
    if bounds:
        assert found.clocks[-1] == (END if bounds[-1] == "inf" else bounds[-1])


def _comparable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "kind" or value != "interval"}


def _steps(found: Outcome, wanted: list[dict[str, Any]], got: list[tuple[int, dict[str, Any]]]) -> None:
    """The rows so far, and the bound, after each item that releases something."""
    payloads = [(found.ends[tick], row["payload"]) for tick, row in got]
    assert [payload for _, payload in payloads] == [payload for step in wanted for payload in step["out"]]
    for step in wanted:
        tick = next(n for n, upto in enumerate(found.ends) if upto >= step["after"])
        listed = [payload for at, payload in payloads if at == found.ends[tick]]
        assert set(step["out"]) <= set(listed)
        if "cti" in step and found.ends[tick] == step["after"]:
            assert found.clocks[tick] == step["cti"]
