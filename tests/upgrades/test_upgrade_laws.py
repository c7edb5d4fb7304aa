"""A pipeline runs on with other SQL: it gives what an oracle says that knows of the change, whatever the cuts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from upgrades.changing import (
    LATE,
    LOG,
    MINUTES,
    OTHER,
    RAW,
    Judged,
    Place,
    judged,
    minutes,
    random_cuts,
    random_rows,
    script,
)

from rowtime.runtime.read_back import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = 40
SEEDS = (1, 2)
pytestmark = pytest.mark.sampled(4)


def changed(place: Place, before: str, after: str, seed: int) -> int:
    """Half of random rows with one script, the rest with the other; at which row it changed."""
    chance = random.Random(f"upgrade {seed}")
    rows = random_rows(chance, ROWS)
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
    """Every output of the pumps 1, 2 and 4, the ledger, and what `verify` says."""
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


@pytest.mark.parametrize("seed", SEEDS)
def test_a_renamed_view_goes_on_as_if_it_had_never_been_called_otherwise(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    place = Place(tmp_path, spark)
    after = script(MINUTES, RAW, LATE, view="in_order")
    changed(place, script(MINUTES, RAW, LATE), after, seed)
    check_all(place, judged(place.items, 0, (20, 20)), "in_order", after)


@pytest.mark.parametrize("widths", [(10, 45), (45, 10)], ids=["wider", "narrower"])
@pytest.mark.parametrize("seed", SEEDS)
def test_another_tolerance_rules_from_the_change_on_and_what_was_promised_stays(
    spark: SparkSession, tmp_path: Path, seed: int, widths: tuple[int, int]
) -> None:
    place = Place(tmp_path, spark)
    before, after = (script(MINUTES, RAW, LATE, within=within) for within in widths)
    change = changed(place, before, after, seed)
    check_all(place, judged(place.items, change, widths), "sorted", after)


@pytest.mark.parametrize("limits", [(12, 30), (30, 12)], ids=["wider", "narrower"])
@pytest.mark.parametrize("seed", SEEDS)
def test_another_guard_rules_from_the_change_on(
    spark: SparkSession, tmp_path: Path, seed: int, limits: tuple[int, int]
) -> None:
    place = Place(tmp_path, spark)
    guards = [f" EARLY BEYOND INTERVAL '{limit}' SECOND" for limit in limits]
    before, after = (script(MINUTES, RAW, LATE, guard=guard) for guard in guards)
    change = changed(place, before, after, seed)
    check_all(place, judged(place.items, change, (20, 20), limits), "sorted", after)


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
def test_a_sink_that_is_gone_leaves_the_others_as_they_are(spark: SparkSession, tmp_path: Path, seed: int) -> None:
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
    for sql in (scripts[1], scripts[2]):  # two in a row, nothing in between
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
def test_what_means_the_same_is_no_change(spark: SparkSession, tmp_path: Path, what: str) -> None:
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
