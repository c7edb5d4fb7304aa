"""A change of the SQL is there completely or not at all, wherever the driver dies and whichever write fails."""

from __future__ import annotations

import errno
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reliability.crash.cases import KINDS, Case, State, close
from reliability.crash.inside import restored
from reliability.crash.shapes import SHAPES, SORTED
from reliability.crash.writes import failing, watched
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import scan
from rowtime.core.errors import Refused, RowtimeError
from rowtime.state.settings import put
from tests.upgrades.changing import LATE, LOG, OTHER, RAW, Place, script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(16)

NAMES = {"sa": "a_in_order", "sb": "b_in_order", "both": "all_rows"}
NEW_SINK = """CREATE STREAM more (k STRING, v BIGINT) USING parquet OPTIONS (path '{out}/more');
CREATE PUMP p9 AS INSERT INTO more SELECT STREAM k, v FROM a_in_order;
"""


@dataclass(frozen=True)
class Changing(Case):
    """A pipeline of the crash runs; ``renamed``: its views have other names, ``more``: it has another sink."""

    renamed: bool = False
    more: bool = False

    def script(self) -> str:
        text = super().script()
        if self.renamed:
            text = re.sub(r"\b(sa|sb|both)\b", lambda name: NAMES[name[0]], text)
        return text + NEW_SINK.format(out=self.folder / "out") if self.more else text

    def all_ticks(self, spark: SparkSession) -> State:
        engine = self.engine(spark)
        while engine.tick() is not None:
            pass
        close(engine)
        return self.state()


@pytest.mark.parametrize("number", [KINDS.index(name) for name in SHAPES if SORTED in SHAPES[name]])
def test_readers_of_a_renamed_view_continue_as_if_it_had_always_had_its_name(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    never = Changing(number, tmp_path / "never", renamed=True)
    never.make()
    shutil.copytree(never.folder / "home" / "logs", tmp_path / "logs")
    wanted = never.all_ticks(spark)
    for ticks in (1, 2):
        changed = Changing(number, tmp_path / f"changed after {ticks}")
        changed.define()
        # With the times of their arrival.
        shutil.copytree(tmp_path / "logs", changed.folder / "home" / "logs", dirs_exist_ok=True)
        engine = changed.engine(spark)
        for _ in range(ticks):
            assert engine.tick() is not None
        close(engine)
        assert Changing(number, changed.folder, renamed=True).all_ticks(spark) == wanted


def test_a_crash_before_any_write_of_a_change_leaves_the_old_plan_or_the_new_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    old = Changing(0, tmp_path / "live")
    old.make()
    engine = old.engine(spark)
    engine.tick()
    close(engine)
    new = Changing(0, old.folder, renamed=True, more=True)
    before = old.state()
    shutil.copytree(old.folder, tmp_path / "before")
    images: list[Path] = []
    busy: list[bool] = []

    def keep(_what: str, _path: str) -> None:
        if not busy:  # copying elsewhere writes too
            busy.append(True)
            images.append(tmp_path / f"image {len(images)}")
            shutil.copytree(old.folder, images[-1])
            busy.clear()

    with watched(old.folder, keep):
        close(new.engine(spark))
    after = new.state()
    assert (old.tick, before != after) == (1, True)
    final = new.all_ticks(spark)
    ticks = set()
    for number, image in enumerate(images):
        restored(old, image)
        ticks.add(old.tick)
        if old.tick == 0:  # then the old script continues as if nothing had happened
            close(old.engine(spark))
            assert old.state() == before
        close(new.engine(spark))
        assert new.state() == after
        if number % 10 == 0:
            assert new.all_ticks(spark) == final
    assert ticks == {0, 1}


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_change_of_which_a_write_fails_is_made_by_the_next_start(
    spark: SparkSession, tmp_path: Path, number: int
) -> None:
    old = Changing(0, tmp_path / "live")
    old.make()
    engine = old.engine(spark)
    engine.tick()
    close(engine)
    new = Changing(0, old.folder, renamed=True, more=True)
    shutil.copytree(old.folder, tmp_path / "before")
    writes: list[str] = []
    with watched(old.folder, lambda what, path: writes.append(f"{what} {path}")):
        close(new.engine(spark))
    after = new.state()
    failures = 0
    for at in range(len(writes)):
        restored(old, tmp_path / "before")
        try:
            with watched(old.folder, failing(at, number)):
                close(new.engine(spark))
        except (OSError, RowtimeError):
            failures += 1
            close(new.engine(spark))
        assert new.state() == after, writes[at]
    assert failures > len(writes) // 2


class Died(BaseException):
    """Stands for the death of the driver."""


def half_committed(spark: SparkSession, folder: Path, sql: str) -> Place:
    """A pipeline that died after a tick was committed and before any of its rows was delivered."""
    place = Place(folder, spark)
    place.define(sql)
    place.send([("w1", 0, "a", 1), ("w1", 100, "a", 2), ("w1", 20, "a", 3)])
    engine = place.engine(sql)

    def die(point: str) -> None:
        if point == "after journal":
            raise Died

    engine.hook = die
    with pytest.raises(Died):
        engine.tick()
    engine.stop()
    return place


def test_the_rows_of_a_committed_tick_are_delivered_before_the_change(spark: SparkSession, tmp_path: Path) -> None:
    place = half_committed(spark, tmp_path, script(RAW, LATE))
    assert place.rows("raw") == []
    after = script(RAW, LATE, OTHER, view="in_order")
    place.run(after)
    assert (place.pairs("raw"), place.pairs("other")) == ([("a", 1)], [])
    place.end()
    place.run(after)
    assert (place.pairs("late"), place.pairs("other")) == ([("a", 3)], [("a", 2)])
    assert place.verified(after) == {}


def test_a_sink_is_not_removed_before_it_has_its_last_rows(spark: SparkSession, tmp_path: Path) -> None:
    place = half_committed(spark, tmp_path, script(RAW, LATE))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "check").rglob("*.json")}
    with pytest.raises(Refused, match=r"R408 the last rows of p2.sink, which the script no longer has") as refused:
        place.run(script(LATE))
    assert "Start the old script once" in str(refused.value)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "check").rglob("*.json")} == before
    place.run(script(RAW, LATE))
    assert place.pairs("raw") == [("a", 1)]
    assert place.run(script(LATE)).changes == ("p2 is gone",)


def test_the_rows_of_a_query_are_not_given_to_another_that_takes_its_name(spark: SparkSession, tmp_path: Path) -> None:
    ours, another = "SELECT STREAM k FROM sorted;", "SELECT STREAM v FROM sorted;"
    place = half_committed(spark, tmp_path, script() + ours + another)
    with pytest.raises(Refused, match=r"R408 the last rows of query\d.result"):
        place.run(script() + another + ours)
    place.run(script() + ours + another)
    said = place.run(script() + another + ours).changes
    assert sorted(said) == ["query1 is called query2", "query2 is called query1"]


def test_a_waiting_manual_bound_takes_effect_under_the_new_name(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    before, after = script(RAW, LATE), script(RAW, LATE, view="in_order")
    place.define(before)
    place.send([("w1", 0, "a", 1)])
    engine = place.run(before)
    put(engine.checkpoint.folder, "sorted", 1_704_103_200_000_000 + 60_000_000)
    place.send([("w1", 70, "a", 2), ("w1", 55, "a", 3)])
    place.run(after)
    place.end()
    place.run(after)
    assert (place.pairs("raw"), place.pairs("late")) == ([("a", 1), ("a", 2)], [("a", 3)])
    assert place.verified(after) == {}


def test_a_pump_that_comes_back_continues_its_row_numbers(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path, spark)
    both, without = script(RAW, LATE, LOG), script(RAW, LATE)
    place.define(both)
    for number, sql in enumerate((both, without, both)):
        place.send([("w1", second, "a", second) for second in (number * 200, number * 200 + 100)])
        place.run(sql)
        assert place.verified(sql) == {}
    engine = place.engine(both)
    engine.stop()
    assert [v for _, v in place.pairs("raw")] == [0, 100, 200, 300, 400]
    # 0; 100 and 200 were delivered while it was gone; then 300 and 400.
    assert engine.entry["control"]["p5.sink"]["sequence"] == 3
    log = next(iter(scan(tmp_path / "home" / "logs" / "log", {}).values()))
    assert sum(entry.count for entry in log if isinstance(entry, Rows)) == 3
