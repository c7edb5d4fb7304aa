"""The laws over chains of operators: refusals, promises and state are the oracle's with any cut."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from rowtime.plan.program import compile_script
from rowtime.runtime.session import derive
from rowtime.testing import runner
from rowtime.testing.transcripts import ScriptItem
from tests.laws.checking import check, check_cuts, outcome
from tests.laws.deeper_pipelines import DEEPER, UNTIMED, close_items
from tests.laws.pipelines import HALF, LAWS, LONG, ORIGIN, Law, feeds, transcript
from tests.laws.session_pipelines import SESSIONS
from tests.laws.sorted_pipelines import SORTED
from tests.laws.window_pipelines import WINDOWS
from tests.oracle.stream import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

SELDOM = (*DEEPER[1::2], *WINDOWS[1:], *SESSIONS[1:], *SORTED[1:])  # they run with the slow tests
CHAINS = [
    pytest.param(law, id=law.name, marks=[pytest.mark.slow] if law in SELDOM else [])
    for law in (*DEEPER, *WINDOWS, *SESSIONS, *SORTED)
]
ticks = settings(
    max_examples=40 if LONG else 2,
    deadline=None,
    derandomize=not LONG,
    database=None,
    phases=[Phase.generate, Phase.shrink] if LONG else [Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("law", CHAINS)
def test_a_chain_equals_its_oracle_in_any_cut(spark: SparkSession, law: Law) -> None:
    session = derive(spark)

    @ticks
    @given(close_items(untimed=law.name in UNTIMED))
    def holds(made: list[ScriptItem]) -> None:
        # Arrival times are numbers of items here, so rows without other times keep their numbers.
        check_cuts(session, law, made, shuffle=law.name not in UNTIMED)

    holds()


def _row(number: int, name: str, at: int | None, ev: int | None = None, v: int | None = 1) -> ScriptItem:
    instants = {"ev": ev, "rowtime": at}
    times = {key: None if value is None else ORIGIN + value * HALF for key, value in instants.items()}
    return ScriptItem(number, name, "x", {"n": number, "v": v, **times}, None)


def _bound(number: int, name: str, at: int) -> ScriptItem:
    return ScriptItem(number, name, "x", None, ORIGIN + at * HALF)


FOUND = {
    # An arrival below a bound was refused if both came in one tick, and raised to the bound otherwise.
    "rows without a rowtime": [_row(1, "a", 0), _bound(2, "a", 6), _row(3, "a", None), _row(4, "a", 7)],
    # A second T-sort judged rows in the order in which the first one received them.
    "a t-sort over a t-sort": [_row(1, "a", 0, 4, 0), _row(2, "a", 1, 1, 0), _row(3, "a", 2, 9, 0)],
    # FIRST took the first row that came, not the first by the further key.
    "first and last in the order of keys": [_row(1, "a", 0, 1, 3), _row(2, "a", 1, 1, 2), _row(3, "a", 2, 20, 0)],
    # Rows of a keyed T-sort left in the order of arrival.
    "a union with a keyed t-sort": [
        _row(1, "a", 0, 1, 3), _row(2, "a", 1, 1, 2), _row(3, "a", 2, 20, 0), _row(4, "b", 12),
    ],
    # The rows of one GROUP BY with equal rowtimes lost their order in a UNION ALL.
    "a union of groups": [
        _row(1, "a", 0, v=3), _row(2, "a", 0, v=1), _row(3, "a", 1, v=2), _row(4, "b", 1, v=2),
        _row(5, "a", 9), _row(6, "b", 9),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_bugs_found_by_chains_stay_fixed(spark: SparkSession, name: str) -> None:
    law, made, session = {law.name: law for law in DEEPER}[name], FOUND[name], derive(spark)
    for cut in ([len(made)], [2, len(made)]):
        check(law, made, outcome(session, law, made, cut))


@pytest.mark.parametrize("name", ["t-sort", "group by within", "union all"])
def test_the_ledger_adds_up_and_nothing_is_left_in_the_state(spark: SparkSession, name: str) -> None:
    from tests.laws.fault_rows import EXAMPLE

    law = {law.name: law for law in LAWS}[name]
    case, found = transcript(law, EXAMPLE), runner.Outcome()
    folder = Path(tempfile.mkdtemp(prefix="rowtime-test-"))
    try:
        engine = runner._engine(derive(spark), compile_script(case.sql), case, folder, found)
        for upto in (5, 9, len(EXAMPLE)):
            for source in engine.sources.values():
                source.upto = upto  # type: ignore[attr-defined]
            found.ends.append(upto)
            report = engine.tick()
            assert report is not None
            assert all(_adds_up(counts) for counts in report.ledger.values())
        _, refused = law.oracle(feeds(EXAMPLE))
        for gate, counts in engine.entry["totals"].items():
            reasons = {k: n for k, n in counts.items() if n and k not in ("in", "accepted")}
            assert reasons == Counter(refusal.reason for refusal in refused if refusal.gate == gate)
            assert _adds_up(counts)
        assert engine.entry["totals"]["a"]["in"] == stream("a", feeds(EXAMPLE)["a"]).rows_in
        assert engine.entry["segments"] == {}
        assert engine.entry["held"] == {}
        assert not [path for path in (folder / "state").rglob("*") if path.is_file()]
        engine.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _adds_up(counts: Mapping[str, int]) -> bool:
    refused = sum(n for name, n in counts.items() if name not in ("in", "accepted"))
    return counts["in"] == counts["accepted"] + refused
