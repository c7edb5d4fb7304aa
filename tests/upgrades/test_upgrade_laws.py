"""A pipeline continues with other SQL: its output equals that of an oracle that knows of the change, with any cut."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.audit.read_back import tables
from rowtime.core.time import to_text
from tests.upgrades.changing import (
    LATE,
    LOG,
    MINUTES,
    OTHER,
    RAW,
    SECOND,
    START,
    Judged,
    Place,
    judged,
    last_of_minute,
    minutes,
    random_cuts,
    random_rows,
    script,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 40
SEEDS = (1, 2)
pytestmark = pytest.mark.sampled(16)


def changed(place: Place, before: str, after: str, seed: int, falls: Sequence[int] = (0, 0, 5, 15, 25, 40, 60)) -> int:
    """Half of random rows with one script, the rest with the other; returns the row of the change."""
    chance = random.Random(f"upgrade {seed}")
    rows = random_rows(chance, ROWS, falls)
    change = chance.randint(8, len(rows) - 8)
    place.define(after)
    start = 0
    for end in random_cuts(chance, len(rows), change):
        place.send(rows[start:end])
        place.run(before if end <= change else after)
        start = end
    place.end()
    place.run(after)
    return change


def check_all(place: Place, expected: Judged, view: str, after: str) -> None:
    """Every output of the pumps 1, 2 and 4, the ledger, and the result of `verify`."""
    engine = place.engine(after)
    engine.stop()
    totals = engine.entry["totals"][view]
    refused = sum(n for reason, n in totals.items() if reason not in ("in", "accepted"))
    assert (totals["in"], totals["accepted"], refused) == (
        len(place.items),
        len(expected.accepted),
        len(expected.late),
    )
    assert place.pairs("raw") == [row[3:] for row in expected.ordered]
    assert Counter(row[-3:] for row in place.rows("minutes")) == minutes(expected.accepted)
    assert Counter(place.pairs("late")) == Counter(row[3:] for row in expected.late)
    assert expected.late, "the data has late rows"
    assert place.verified(after) == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_renamed_view_continues_as_if_it_had_always_had_its_name(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    place = Place(tmp_path, spark)
    after = script(MINUTES, RAW, LATE, view="in_order")
    changed(place, script(MINUTES, RAW, LATE), after, seed)
    check_all(place, judged(place.items, 0, (20, 20)), "in_order", after)


@pytest.mark.parametrize("widths", [(10, 45), (45, 10)], ids=["wider", "narrower"])
@pytest.mark.parametrize("seed", SEEDS)
def test_another_tolerance_applies_after_the_change_and_promises_stay(
    spark: SparkSession, tmp_path: Path, seed: int, widths: tuple[int, int]
) -> None:
    place = Place(tmp_path, spark)
    before, after = (script(MINUTES, RAW, LATE, within=within) for within in widths)
    change = changed(place, before, after, seed)
    check_all(place, judged(place.items, change, widths), "sorted", after)


@pytest.mark.parametrize("limits", [(12, 30), (30, 12)], ids=["wider", "narrower"])
@pytest.mark.parametrize("seed", SEEDS)
def test_another_guard_applies_after_the_change(
    spark: SparkSession, tmp_path: Path, seed: int, limits: tuple[int, int]
) -> None:
    place = Place(tmp_path, spark)
    guards = [f" EARLY BEYOND INTERVAL '{limit}' SECOND" for limit in limits]
    before, after = (script(MINUTES, RAW, LATE, guard=guard) for guard in guards)
    change = changed(place, before, after, seed)
    check_all(place, judged(place.items, change, (20, 20), limits), "sorted", after)


WITHIN = """CREATE PUMP p1 AS INSERT INTO minutes SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM s
  GROUP BY FLOOR(ev TO MINUTE) WITHIN INTERVAL '{within}' SECOND, k;
"""


@pytest.mark.parametrize("widths", [(5, 45), (45, 5)], ids=["wider", "narrower"])
@pytest.mark.parametrize("seed", SEEDS)
def test_another_tolerance_of_groups_judges_by_whole_groups(
    spark: SparkSession, tmp_path: Path, seed: int, widths: tuple[int, int]
) -> None:
    place = Place(tmp_path, spark)
    before, after = (script(WITHIN, within=within) for within in widths)
    change = changed(place, before, after, seed, (0, 0, 40, 90, 150))
    expected = judged(place.items, change, widths, by=last_of_minute)
    assert Counter(row[-3:] for row in place.rows("minutes")) == minutes(expected.accepted)
    assert expected.late
    assert place.verified(after) == {}


def test_another_arrival_limit_applies_after_the_change(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    limits = (f" EARLY BEYOND INTERVAL '{minutes}' MINUTE AFTER ARRIVAL" for minutes in (10, 60))
    before, after = (script(RAW, guard=limit) for limit in limits)
    place.define(before)
    now = (time.time_ns() // 1000 - START) // SECOND
    for number, sql in enumerate((before, after)):
        place.send([("w1", now + 1800 + number, "a", number), ("w1", now + 1801 + number, "b", number)])
        engine = place.run(sql)
        assert engine.entry["ledger"]["sorted"].get("EARLY", 0) == (2, 0)[number]
    place.end()
    place.run(after)
    assert place.pairs("raw") == [("a", 1), ("b", 1)]


def test_another_guard_of_a_stream_applies_after_the_change(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    before = script(RAW.replace("{view}", "s")).replace(
        "ev TIMESTAMP);", "ev TIMESTAMP) EARLY BEYOND INTERVAL '1' HOUR;"
    )
    after = before.replace("CREATE STREAM s", "CREATE OR REPLACE STREAM s").replace("'1' HOUR", "'2' HOUR")
    place.define(before)
    for sql, seconds in ((before, (0, 5000)), (after, (5001, 15000))):
        with rt.writer("s", home=tmp_path / "home", writer="w1") as log:
            for second in seconds:
                at = to_text(START + second * SECOND)
                log.insert([{"rowtime": at, "k": "a", "v": second, "ev": at}])
        place.run(sql)
    assert [v for _, v in place.pairs("raw")] == [0, 5001]
    assert place.verified(after) == {}


def test_a_new_function_is_called_with_the_rows_from_the_change_on(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    before, after = script(RAW), script(RAW, "CREATE PUMP f AS INSERT INTO called SELECT STREAM k, v FROM {view};\n")
    got: list[tuple[int, list[int]]] = []
    place.define(before)
    place.send([("w1", second, "a", second) for second in (0, 100)])
    place.run(before)
    place.send([("w1", second, "a", second) for second in (200, 300)])
    made = place.pipeline(after).sink("called", lambda batch: got.append((batch.first, batch.table()["v"].to_pylist())))
    made.run_available(tmp_path / "check")
    assert [v for _, v in place.pairs("raw")] == [0, 100, 200]
    assert got == [(0, [100, 200])]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_sink_beside_one_in_order_gets_what_that_gets_from_the_change_on(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    place = Place(tmp_path, spark)
    seen: list[int] = []
    after = script(MINUTES, RAW, OTHER, LOG)
    original = place.run

    def run(sql: str) -> object:
        if sql == after and not seen:
            seen.append(len(place.pairs("raw")))
        return original(sql)

    place.run = run  # type: ignore[method-assign, assignment]
    changed(place, script(MINUTES, RAW), after, seed)
    raw = [row[3:] for row in judged(place.items, 0, (20, 20)).ordered]
    assert place.pairs("raw") == raw
    assert place.pairs("other") == raw[seen[0] :]
    assert 0 < seen[0] < len(raw)
    assert place.verified(after) == {}


def test_a_copy_has_files_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    before, after = script(RAW), script(RAW, OTHER)
    place.define(before)
    place.send([("w1", second, "a", second) for second in (0, 30)])
    place.run(before)
    segments = place.run(after).entry["segments"]
    one, other = ([row[0] for row in segments[f"{pump}.sink.merge/state"]] for pump in ("p2", "p3"))
    assert one
    assert len(one) == len(other)
    assert not set(one) & set(other)
    (tmp_path / "check" / one[0]).unlink()
    assert all((tmp_path / "check" / path).exists() for path in other)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_sink_that_is_the_first_in_order_begins_with_the_rows_read_from_the_change_on(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    place = Place(tmp_path, spark)
    after = script(MINUTES, OTHER, LATE)
    change = changed(place, script(MINUTES), after, seed)
    expected = judged(place.items, 0, (20, 20))
    later = set(place.items[change:])
    assert place.pairs("other") == [row[3:] for row in expected.ordered if row in later]
    assert Counter(place.pairs("late")) == Counter(row[3:] for row in expected.late if row in later)
    assert Counter(row[-3:] for row in place.rows("minutes")) == minutes(expected.accepted)
    assert place.verified(after) == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_removing_a_sink_does_not_affect_others(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    place = Place(tmp_path, spark)
    after = script(RAW)
    changed(place, script(MINUTES, RAW, LATE), after, seed)
    assert place.pairs("raw") == [row[3:] for row in judged(place.items, 0, (20, 20)).ordered]
    assert place.verified(after) == {}


TWICE = "CREATE PUMP q1 AS INSERT INTO other SELECT STREAM k, c FROM counts;\n"
COUNTS = """CREATE VIEW counts AS SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM {view} AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
CREATE PUMP p1 AS INSERT INTO minutes SELECT STREAM k, c, total FROM counts;
"""


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_sink_of_groups_gets_whole_groups(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    place = Place(tmp_path, spark)
    after = script(COUNTS, TWICE)
    changed(place, script(COUNTS), after, seed)
    wanted = minutes(judged(place.items, 0, (20, 20)).accepted)
    assert Counter(row[-3:] for row in place.rows("minutes")) == wanted
    found = Counter(place.pairs("other"))
    assert found
    assert found <= Counter((k, c) for k, c, _ in wanted.elements())
    last = max(at for at, *_ in place.items) // 60_000_000 * 60_000_000
    assert any(row[0].timestamp() * 1e6 > last for row in place.rows("other"))
    assert place.verified(after) == {}


def test_several_changes_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    scripts = [
        script(RAW, LATE),
        script(RAW, LATE, view="a", within=30),
        script(RAW, LATE, OTHER, view="b", within=30),
        script(RAW, LATE, OTHER, view="sorted", within=5),
    ]
    rows = random_rows(random.Random("several"), ROWS)
    place.define(scripts[-1])
    for number, sql in enumerate(scripts):
        place.send(rows[number * 10 : (number + 1) * 10])
        place.run(sql)
        assert place.verified(sql) == {}
    for sql in (scripts[1], scripts[2]):  # two in a row, without a tick between
        place.run(sql)
        assert place.verified(sql) == {}
    place.send(rows[40:])
    place.end()
    place.run(scripts[2])
    assert place.verified(scripts[2]) == {}
    engine = place.engine(scripts[2])
    engine.stop()
    totals = engine.entry["totals"]["b"]
    assert totals["in"] == len(rows)
    assert len(place.rows("raw")) == totals["accepted"]
    refused = tables(engine.checkpoint.rejected("b", engine.entry["tick"])).num_rows
    assert len(place.rows("late")) == totals["in"] - totals["accepted"] == refused > 0


Change = Callable[[str], str]
TRIVIAL: dict[str, Change] = {
    "a comment": lambda sql: sql.replace("GROUP BY", "/* every minute */ GROUP BY"),
    "white space": lambda sql: sql.replace("\n", "\n\n  "),
    "another order": lambda sql: sql.replace(LOG.format(view="sorted"), "").replace(
        "CREATE PUMP p1", LOG.format(view="sorted") + "CREATE PUMP p1"
    ),
    "another spelling": lambda sql: sql.replace("INTERVAL '20' SECOND", "INTERVAL '00:20' MINUTE TO SECOND").replace(
        "select", "SELECT"
    ),
}


@pytest.mark.parametrize("what", TRIVIAL)
def test_equivalent_sql_is_not_a_change(spark: SparkSession, tmp_path: Path, what: str) -> None:
    place = Place(tmp_path, spark)
    before = script(MINUTES, LOG)
    after = TRIVIAL[what](before)
    assert after != before
    place.define(before)
    place.send([("w1", 0, "a", 1)])
    place.run(before)
    engine = place.run(after)
    assert engine.changes == ()
    assert engine.entry["tick"] == 0


def test_a_start_that_changes_nothing_says_nothing_and_one_that_does_says_it_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = Place(tmp_path, spark)
    before, after = script(RAW), script(RAW, OTHER, view="in_order", within=30)
    place.define(before)
    place.send([("w1", 0, "a", 1)])
    place.run(before)
    said = place.run(after).changes
    assert said == ("sorted is called in_order", "in_order: WITHIN 0:00:20 is 0:00:30", "p3 is new")
    assert place.run(after).changes == ()


def test_before_the_first_tick_any_change_is_accepted(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    before, after = script(RAW), script(RAW, OTHER, view="in_order", within=30)
    place.engine(before).stop()
    place.engine(script(RAW, MINUTES)).stop()  # a new group by, which is refused after the first tick
    assert place.run(after).changes == ()
    place.send([("w1", 0, "a", 1), ("w1", 100, "a", 2)])
    place.run(after)
    assert place.pairs("other") == [("a", 1)]
    assert place.verified(after) == {}


RUNNING = """CREATE VIEW {view}_top AS SELECT STREAM k, MAX(v) OVER (ORDER BY x.ROWTIME ROWS UNBOUNDED PRECEDING) AS m
  FROM {view} AS x;
CREATE PUMP p3 AS INSERT INTO other SELECT STREAM CAST(m AS STRING) AS k, COUNT(*) AS c FROM {view}_top GROUP BY m;
"""


def test_the_mark_of_a_running_call_follows_its_view(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    before, after = script(RUNNING), script(RUNNING, view="in_order")
    place.define(before)
    place.send([("w1", second, "a", second) for second in (0, 30, 40)])
    old = place.run(before).entry["control"]["sorted_top.v0"]
    assert old["mark"] is not None
    new = place.run(after).entry["control"]
    assert (new["in_order_top.v0"], "sorted_top.v0" in new) == (old, False)
    place.send([("w1", second, "a", second) for second in (41, 100)])
    place.end()
    place.run(after)
    assert sorted(place.pairs("other")) == [("0", 1), ("100", 1), ("30", 1), ("40", 1), ("41", 1)]
    assert place.verified(after) == {}
