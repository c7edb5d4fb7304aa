"""What is held after an item (open groups, sessions and panes; rows that wait) is the same in every cut."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.core.time import BEGINNING
from rowtime.operators.over.over_calls import OverControl
from rowtime.runtime import held
from rowtime.runtime.engine import Engine
from rowtime.runtime.session import derive
from rowtime.testing import runner
from rowtime.testing.runner import play
from tests.laws.as_of_pipelines import AS_OF
from tests.laws.checking import outcome, same_holding
from tests.laws.deeper_pipelines import DEEPER
from tests.laws.fault_rows import EXAMPLE, bound, item
from tests.laws.lifetime_pipelines import LIFETIMES, LifetimeLaw
from tests.laws.match_pipelines import MATCHES
from tests.laws.over_pipelines import OVER
from tests.laws.panes_pipelines import PANES
from tests.laws.pipelines import LAWS, Law
from tests.laws.session_pipelines import SESSIONS
from tests.laws.sorted_pipelines import SORTED
from tests.laws.speculation_pipelines import SPECULATION
from tests.laws.test_lifetime_laws import ENDED
from tests.laws.window_pipelines import WINDOWS
from tests.ways import in_tasks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from rowtime.runtime.executors.tasks import Tasks

pytestmark = pytest.mark.sampled(8)

CUTS = ([3, 6, 9, 11, 12, 14], [5, 8, 13, 14])
QUICK = ("group by with partial results", "group by ceil that keeps rows", "sessions with partial results",
         "groups of hopping windows", "panes of complete fires", "staggered windows", "keys that expire",
         "the last row of the key")  # fmt: skip
GROUPING = [
    pytest.param(law, id=law.name, marks=() if law.name in QUICK else pytest.mark.slow)
    for law in (*LAWS, *WINDOWS, *SESSIONS, *SORTED, *PANES, *DEEPER, *MATCHES, *OVER, *AS_OF)
]
BY_NUMBER = [
    pytest.param(law, id=law.name, marks=() if law.name in QUICK else pytest.mark.slow) for law in (*OVER, *AS_OF)
]
LAW = {law.name: law for law in (*LAWS, *SESSIONS, *OVER, *AS_OF)}


@pytest.mark.parametrize("law", GROUPING)
def test_what_is_held_after_an_item_does_not_depend_on_the_cut(spark: SparkSession, law: Law) -> None:
    session = derive(spark)
    each = outcome(session, law, EXAMPLE, range(1, len(EXAMPLE) + 1))
    for cut in CUTS:
        same_holding(each, outcome(session, law, EXAMPLE, cut, restart=cut is CUTS[1]))


@pytest.mark.parametrize("law", BY_NUMBER)
def test_what_is_held_is_the_same_if_tasks_compute_it(spark: SparkSession, sent: list[Tasks], law: Law) -> None:
    session = derive(spark)
    of_tasks = outcome(session, law, EXAMPLE, CUTS[0], restart=True)
    assert sent
    sent.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "Engine", Engine)
        same_holding(of_tasks, outcome(session, law, EXAMPLE, range(1, len(EXAMPLE) + 1)))
    assert not sent


@pytest.mark.parametrize("law", BY_NUMBER)
def test_what_an_older_version_did_not_count_is_counted_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, law: Law
) -> None:
    """Ticks that never know the count before them hold the same as ticks that change it."""
    session = derive(spark)
    each = outcome(session, law, EXAMPLE, range(1, len(EXAMPLE) + 1))
    before = OverControl.of.__func__  # type: ignore[attr-defined] # of a class method

    def without_counts(kind: type[OverControl], stored: Mapping[str, Any]) -> OverControl:
        found: OverControl = before(kind, stored)
        return replace(found, held_rows=None, held_heads=None, held_at=BEGINNING)

    monkeypatch.setattr(OverControl, "of", classmethod(without_counts))
    same_holding(each, outcome(session, law, EXAMPLE, range(1, len(EXAMPLE) + 1), restart=True))


def test_windows_hold_the_last_rows_of_each_key(spark: SparkSession) -> None:
    sql = "SELECT STREAM n, LAG(n, 2) OVER w AS p FROM a WINDOW w AS (PARTITION BY v)"
    law = replace(LAW["group by with partial results"], sql=sql)
    rows = [item(number, "a", "x", number, v=number % 3 // 2) for number in range(1, 10)]
    for cut in (range(1, 10), [4, 5, 9]):
        found = outcome(derive(spark), law, rows, cut)
        by_item = dict(zip(found.ends, ([*holding.values()] for holding in found.holding), strict=True))
        assert by_item == {number: [min(2, number - (number + 1) // 3) + min(2, (number + 1) // 3)] for number in cut}


def test_a_join_as_of_a_time_holds_the_last_row_of_each_key_and_no_row_of_the_left(spark: SparkSession) -> None:
    rows = [item(1, "b", "x", 1, v=1), item(2, "b", "x", 1, v=2), item(3, "b", "x", 1, v=1), item(4, "a", "x", 2, v=1),
            item(5, "a", "x", 2, v=7), bound(6, "b", "x", 3), bound(7, "a", "x", 3)]  # fmt: skip
    found = outcome(derive(spark), LAW["the last row of the key"], rows, range(1, 8))
    assert sum(found.holding[-1].values()) == 2, "two keys have a row of b; nothing waits for a with v = 7"


OF_EVENTS = ("snapshots", "edges under generated bounds")
EVENTS = [
    pytest.param(
        law, id=law.name, marks=() if law.name in ("snapshots", "edges under generated bounds") else pytest.mark.slow
    )
    for law in (*LIFETIMES, *SPECULATION)
]


@pytest.mark.parametrize("law", EVENTS)
def test_how_many_events_are_held_does_not_depend_on_the_cut(spark: SparkSession, law: LifetimeLaw) -> None:
    session, count = derive(spark), len(ENDED)
    each = play(session, law.transcript(ENDED), range(1, count + 1))
    same_holding(each, play(session, law.transcript(ENDED), [5, 9, 12, 16, 19, count], restart=True))


# Two groups in five ticks, then one in two.
MINE = [item(1, "a", "x", 1), item(2, "a", "x", 2), item(3, "a", "x", 2, v=2), item(4, "a", "x", 3),
        item(5, "a", "x", 3, v=2), bound(6, "a", "x", 4), item(7, "a", "x", 5), item(8, "a", "x", 5),
        bound(9, "a", "x", 8)]  # fmt: skip


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("parts", [0, 1, 2])
def test_a_group_counts_once_however_many_ticks_had_its_rows(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    if parts:
        in_tasks(monkeypatch, parts)
    found = outcome(derive(spark), LAW["group by with partial results"], MINE, range(1, 10), restart=bool(parts))
    assert [sum(holding.values()) for holding in found.holding] == [1, 1, 2, 2, 2, 0, 1, 1, 0]


MATCHED = """SELECT STREAM f, l FROM a MATCH_RECOGNIZE ({0} ORDER BY ROWTIME MEASURES FIRST(A.n) AS f, LAST(B.n) AS l
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) WITHIN INTERVAL '2' SECOND
  DEFINE A AS v = 1, B AS v = 2)"""


@pytest.mark.parametrize("partition", ["", "PARTITION BY ev"])
def test_a_match_holds_the_rows_that_can_still_match_and_no_partitions(spark: SparkSession, partition: str) -> None:
    law = replace(LAW["group by with partial results"], sql=MATCHED.format(partition))
    rows = [item(1, "a", "x", 1), item(2, "a", "x", 2, v=2), item(3, "a", "x", 3), item(4, "a", "x", 3, v=0),
            item(5, "a", "x", 4, v=1), bound(6, "a", "x", 9)]  # fmt: skip
    each = outcome(derive(spark), law, rows, range(1, len(rows) + 1))
    assert [holding.get("query.match/rows", 0) for holding in each.holding] == [1, 0, 1, 0, 1, 0]
    assert not any("partitions" in key for holding in each.holding for key in holding)
    same_holding(each, outcome(derive(spark), law, rows, [2, 4, 6], restart=True))


def test_the_law_catches_parts_that_are_counted(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "SELECT STREAM v, COUNT(*) AS c FROM a GROUP BY STEP(a.ROWTIME BY INTERVAL '2' SECOND), v"
    law, session = replace(LAW["group by with partial results"], sql=sql), derive(spark)  # without rows that it keeps
    monkeypatch.setattr(held, "counts_groups", lambda *_: False)
    with pytest.raises(AssertionError, match="held after item"):
        same_holding(outcome(session, law, MINE, range(1, 10)), outcome(session, law, MINE, [5, 9]))
