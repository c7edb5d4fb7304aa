"""A pair of events of which one is removed, or ended before the other begins, is refused in any cut or in none."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Final

import pytest

from rowtime.core.time import END
from rowtime.operators.events.lifetime_join import LifetimeJoin, LifetimePairs
from rowtime.runtime.session import derive
from rowtime.testing import runner
from rowtime.testing.runner import Outcome, play
from rowtime.testing.transcripts import ScriptItem, Transcript
from tests.laws.failing_pipelines import SHOWN
from tests.laws.pipelines import ORIGIN, SECOND
from tests.laws.test_failing_laws import refused_of, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.executors.tasks import Tasks

EDGES: Final = (
    "CREATE STREAM {} (kind STRING, n INT, v INT, since TIMESTAMP, until TIMESTAMP) EVENT SHAPE BY kind (since, until);"
)
DECLARE: Final = (
    EDGES.format("l")
    + EDGES.format("r")
    + ("CREATE STREAM i (n INT, v INT, since TIMESTAMP, until TIMESTAMP) EVENT SHAPE INTERVAL (since, until);")
)
WINDOW: Final = "GROUP BY TUMBLE(INTERVAL '2' SECOND)"
QUERIES: Final = {
    "select list": f"SELECT STREAM l.v AS a, r.v AS b, 10 DIV (l.n * r.n) AS q FROM l JOIN r ON l.v = r.v {SHOWN}",
    "condition": f"SELECT STREAM l.v AS a, r.n AS b FROM l JOIN r ON l.v = r.v AND 10 DIV (l.n * r.n) > 3 {SHOWN}",
    "where": f"SELECT STREAM l.v AS a FROM l JOIN r ON l.v = r.v WHERE 10 DIV (l.n * r.n) > 3 {SHOWN}",
    "intervals": f"SELECT STREAM l.v AS a, i.v AS b, 10 DIV (l.n * i.n) AS q FROM l JOIN i ON l.v = i.v {SHOWN}",
    "condition on intervals": f"SELECT STREAM l.v AS a FROM i JOIN l ON l.v = i.v AND 10 DIV (l.n * i.n) > 3 {SHOWN}",
    "left join": f"SELECT STREAM l.v AS a, 10 DIV (l.n * r.n) AS q FROM l LEFT JOIN r ON l.v = r.v {SHOWN}",
    "anti-join": f"SELECT STREAM l.v AS a FROM l LEFT ANTI JOIN r ON l.v = r.v AND 10 DIV (l.n * r.n) > 3 {SHOWN}",
    "semi-join": f"SELECT STREAM l.v AS a FROM l LEFT SEMI JOIN r ON l.v = r.v AND 10 DIV (l.n * r.n) > 3 {SHOWN}",
    "condition of a left join": "SELECT STREAM l.v AS a, r.n AS b FROM l LEFT JOIN r ON l.v = r.v AND "
    f"10 DIV (l.n * r.n) > 3 {SHOWN}",
    "condition of changes": "SELECT STREAM l.v AS a, r.n AS b FROM l JOIN r ON l.v = r.v AND 10 DIV (l.n * r.n) > 3 "
    "EMIT CHANGES",
    "changes of an anti-join": "SELECT STREAM l.v AS a FROM l LEFT ANTI JOIN r ON l.v = r.v AND "
    "10 DIV (l.n * r.n) > 3 EMIT CHANGES",
    "shifted": "CREATE VIEW x AS SELECT STREAM l.n AS n, r.v AS v FROM l JOIN r ON l.v = r.v;"
    f"SELECT STREAM 10 DIV n AS q FROM SHIFT(x, INTERVAL '1' SECOND) AS y {SHOWN}",
    "changes": "SELECT STREAM l.v AS a, 10 DIV (l.n * r.n) AS q FROM l JOIN r ON l.v = r.v EMIT CHANGES",
    "windows": f"SELECT STREAM SUM(10 DIV (l.n * i.n)) AS s FROM l JOIN i ON l.v = i.v {WINDOW} {SHOWN}",
    "snapshots": f"SELECT STREAM MAX(10 DIV (l.n * r.n)) AS s FROM l JOIN r ON l.v = r.v GROUP BY SNAPSHOT() {SHOWN}",
}
ALWAYS: Final = ("select list", "condition")
"""The cases of the default run."""
CASES: Final = [pytest.param(name, id=name, marks=[] if name in ALWAYS else [pytest.mark.slow]) for name in QUERIES]
SEEDS: Final = (1, 2)


def items(seed: int) -> list[ScriptItem]:
    """Edges of two streams, and intervals, with bounds between them; a third of the ends removes its event."""
    chance = random.Random(seed)
    bounds, live, made = dict.fromkeys("lri", 0), {"l": [], "r": []}, list[tuple[str, dict[str, object] | int]]()

    def at(second: int) -> int:
        return ORIGIN + second * SECOND

    for _ in range(16):
        stream = chance.choice("lllrrri")
        first, what = bounds[stream], chance.random()
        if what < 0.2:
            bounds[stream] = first + chance.randrange(2)
            made.append((stream, at(bounds[stream])))
            continue
        event = {"n": chance.randrange(3) % 2, "v": chance.randrange(2), "since": at(first + chance.randrange(3))}
        if stream == "i":
            made.append((stream, event | {"until": event["since"] + SECOND * chance.randrange(1, 4)}))
        elif what < 0.6 or not live[stream]:
            live[stream].append(event)
            made.append((stream, {"kind": "start", **event, "until": None}))
        else:
            event = live[stream].pop(chance.randrange(len(live[stream])))
            until = max(event["since"], at(first)) + SECOND * chance.randrange(3)
            made.append((stream, {"kind": "end", **event, "until": until}))
    numbered = [
        ScriptItem(n, stream, "x", *((None, what) if isinstance(what, int) else (what, None)))
        for n, (stream, what) in enumerate(made, 1)
    ]
    return numbered + [ScriptItem(len(made) + n, stream, "x", None, END) for n, stream in enumerate("lri", 1)]


def played(spark: SparkSession, name: str, made: list[ScriptItem], cut: list[int]) -> Outcome:
    writers = {stream: ["x"] for stream in "lri"}
    case = Transcript("pairs", "pairs", DECLARE + QUERIES[name], tuple(made), (), "exact", frozenset(), writers, {})
    return play(derive(spark), case, [*cut, len(made)], restart=True)


def check(spark: SparkSession, name: str, seed: int) -> int:
    made = items(seed)
    whole = played(spark, name, made, [])
    for cut in ([6], [4, 11], [*range(1, len(made))]):
        other = played(spark, name, made, cut)
        assert refused_of(other) == refused_of(whole), (seed, cut)
        assert rows_of(other) == rows_of(whole), (seed, cut)
    return sum(row["reason"] == "MALFORMED" for row in whole.refused)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("both_ways")
def test_a_removed_pair_is_refused_in_any_cut_or_in_none(spark: SparkSession, name: str) -> None:
    seeds = SEEDS[:1] if name in ALWAYS else SEEDS
    assert sum(check(spark, name, seed) for seed in seeds), "nothing has failed"


@pytest.mark.slow
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.usefixtures("sent")
def test_a_removed_pair_is_refused_in_any_cut_or_in_none_by_tasks(spark: SparkSession, name: str) -> None:
    check(spark, name, 1)


def test_pairs_of_a_checkpoint_of_0_2_0_are_not_found_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There, pairs went out before the bound had passed their start."""
    monkeypatch.setitem(QUERIES, "pairs", f"SELECT STREAM l.v AS a, r.n AS b FROM l JOIN r ON l.v = r.v {SHOWN}")
    made, engines, engine = items(1), list[object](), runner._engine
    whole = played(spark, "pairs", made, [])

    def counted(*given: Any) -> Any:
        engines.append(engine(*given))
        return engines[-1]

    monkeypatch.setattr(runner, "_engine", counted)
    monkeypatch.setattr(LifetimeJoin, "_waits", property(lambda _: len(engines) > 1))
    monkeypatch.setattr(LifetimePairs, "typed", False)
    for cut in ([6], [11], [9, 12]):
        engines.clear()
        assert rows_of(played(spark, "pairs", made, cut)) == rows_of(whole), cut


def test_a_planted_fault_is_found(spark: SparkSession, sent: list[Tasks], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LifetimeJoin, "_waits", property(lambda _: False))
    with pytest.raises(AssertionError):
        check(spark, "select list", 1)
    assert sent
