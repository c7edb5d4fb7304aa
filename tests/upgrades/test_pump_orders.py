"""START and STOP of pumps by a later script: the output, where a pump continues, and the messages."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from reliability.crash.writes import watched
from rowtime.api import altering
from rowtime.cli.status import status_of
from rowtime.core.errors import Refused
from rowtime.core.stores import place_of
from rowtime.state import pump_orders
from rowtime.state.checkpoint import Checkpoint
from tests.deaths import Died, dying
from tests.upgrades.pumps import COUNTS, SCRIPT, Pumps, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine


@pytest.fixture
def pumps(spark: SparkSession, tmp_path: Path) -> Pumps:
    """They are defined, and none is started."""
    made = Pumps(tmp_path, spark)
    made.run()
    return made


def test_a_stopped_pipeline_takes_orders_up_at_its_next_start(pumps: Pumps) -> None:
    pumps.send(2)
    assert (pumps.place.journal.last(), pumps.said()) == (
        None,
        ["a.files: stopped in the script", "a.log: stopped in the script"],
    )
    given = pumps.order("ALTER PUMP a.files START")
    assert (given.pumps, given.unchanged, given.running) == ({"a.files": True}, (), False)
    assert pumps.said()[-1] == "waits: ALTER PUMP a.files START"
    pumps.run()
    assert pumps.files() == [0, 1]
    pumps.send()
    pumps.run()  # the script says STOPPED, but the order applies
    assert pumps.files() == [0, 1, 2]
    assert pumps.said() == ["a.files: started by ALTER PUMP a.files START", "a.log: stopped in the script"]
    assert pumps.verified()


@pytest.mark.slow
def test_a_pump_that_was_stopped_continues_where_it_was(pumps: Pumps) -> None:
    pumps.order("ALTER PUMP * START")
    pumps.send(2)
    pumps.run()
    pumps.order("ALTER PUMP a.* STOP")
    pumps.send(2)
    assert pumps.run().changes == ("a.files is stopped", "a.log is stopped")
    assert (pumps.files(), pumps.log()) == ([0, 1], [0, 1])
    assert pumps.verified()
    pumps.order("ALTER PUMP a.files, a.log START")
    changes = pumps.run().changes
    assert changes == tuple(f"a.{name} is started, and continues where it stopped" for name in ("files", "log"))
    assert (pumps.files(), pumps.log()) == ([0, 1, 2, 3], [0, 1, 2, 3])
    assert pumps.verified()


@pytest.mark.slow
def test_rows_that_others_read_meanwhile_do_not_come_back(pumps: Pumps) -> None:
    pumps.order("ALTER PUMP * START")
    for order in ("ALTER PUMP a.files STOP", "ALTER PUMP a.files START", ""):
        pumps.send(2)
        pumps.run()
        if order:
            pumps.order(order)
            pumps.run()
    assert (pumps.files(), pumps.log()) == ([0, 1, 4, 5], [0, 1, 2, 3, 4, 5])
    assert pumps.verified()


@pytest.mark.slow
def test_groups_of_a_stopped_pump_stay_open(pumps: Pumps) -> None:
    pumps.script = SCRIPT + COUNTS
    pumps.run()  # defines it
    pumps.order("ALTER PUMP a.counts START")
    pumps.send(3, hours=(1, 1, 2))
    pumps.run()
    pumps.order("ALTER PUMP a.counts STOP")
    pumps.send(1, hours=(2,))
    pumps.run()
    pumps.order("ALTER PUMP a.counts START")
    pumps.send(1, hours=(3,))
    pumps.run()
    assert pumps.files("counts", "n") == [2, 2]
    assert pumps.verified()


def test_a_pump_that_would_need_rows_of_the_past_is_refused_at_once(pumps: Pumps) -> None:
    pumps.script = SCRIPT + COUNTS
    pumps.run()  # defines it
    pumps.order("ALTER PUMP a.files START")
    pumps.send(2)
    pumps.run()
    with pytest.raises(Refused, match=r"R401 .*a.counts is new, and its group by would need rows from before"):
        pumps.order("ALTER PUMP a.counts START")
    assert pump_orders.waiting(pumps.folder / "check", pumps.place.plan.orders) == []  # type: ignore[union-attr]


@pytest.mark.slow
def test_an_order_of_which_only_the_pipeline_knows_that_it_does_not_fit_is_refused_there(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch
) -> None:
    pumps.script = SCRIPT + COUNTS
    pumps.run()  # defines it
    pumps.order("ALTER PUMP a.files START")
    pumps.send(2)
    pumps.run()
    order = pump_orders.Order({"a.counts": True}, "ALTER PUMP a.counts START", 0)
    pump_orders.put(pumps.folder / "check", order)
    pump_orders.put(pumps.folder / "check", pump_orders.Order({"a.log": True}, "ALTER PUMP a.log START", 0))
    pumps.send(1)
    query = pumps.run()
    assert (query.exception, pumps.files(), pumps.log()) == (None, [0, 1, 2], [2])
    assert pumps.said() == [
        "a.counts: stopped in the script",
        "a.files: started by ALTER PUMP a.files START",
        "a.log: started by ALTER PUMP a.log START",
    ]
    pump_orders.put(pumps.folder / "check", order)
    pumps.run()
    assert pumps.said()[-1].startswith("refused: ALTER PUMP a.counts START")
    found = status_of(pumps.folder / "check")["orders"]["refused"]["problems"]
    assert [one["code"] for one in found] == ["R401"]
    # An error other than a refusal does not end the run either.
    monkeypatch.setattr(altering, "_go_over", lambda *_: 1 / 0)
    pump_orders.put(pumps.folder / "check", order)
    assert pumps.run().exception is None
    assert status_of(pumps.folder / "check")["orders"]["refused"]["problems"][0]["code"] == "R902"
    assert pumps.verified()


@pytest.mark.slow
def test_a_running_pipeline_takes_orders_up_between_two_ticks(pumps: Pumps) -> None:
    seen: list[dict[str, Any]] = []
    query = pumps.pipeline().start(pumps.folder / "check", listener=seen.append)
    try:
        pumps.send(2)
        assert query.alter("ALTER PUMP a.files START").running
        until(lambda: pumps.files() == [0, 1])
        query.alter("ALTER PUMP a.log START; ALTER PUMP a.files STOP")
        until(lambda: {"changed": ["a.files is stopped", "a.log is started"]} in [*map(ordered, seen)])
        pumps.send(2)
        until(lambda: pumps.log() == [2, 3])
        query.alter("ALTER PUMP * START")
        until(lambda: not pump_orders.waiting(query.checkpoint, query.engine.plan.orders) and len(seen) > 3)
        pumps.send(1)
        until(lambda: pumps.files() == [0, 1, 4] and pumps.log() == [2, 3, 4])
    finally:
        query.stop()
    assert query.exception is None
    assert pumps.verified()
    assert pumps.run().changes == ()


def ordered(progress: dict[str, Any]) -> dict[str, Any]:
    return {"changed": sorted(progress["changed"])} if "changed" in progress else {}


@pytest.mark.slow
def test_an_order_for_what_is_so_already_holds_when_the_script_changes(pumps: Pumps) -> None:
    pumps.send(1)
    running = SCRIPT.replace("a.files STOPPED", "a.files STARTED")
    pumps.run(running)
    assert pumps.order("ALTER PUMP a.files START").unchanged == ("a.files",)
    pumps.run(running)
    assert pumps.said()[0] == "a.files: started by ALTER PUMP a.files START"
    pumps.send(1)
    assert pumps.run(SCRIPT).changes == ()
    assert pumps.files() == [0, 1]
    assert pumps.verified()


@pytest.mark.slow
def test_a_stopped_pump_that_leaves_the_script_is_forgotten(pumps: Pumps) -> None:
    pumps.order("ALTER PUMP * START")
    pumps.send(1)
    pumps.run()
    pumps.order("ALTER PUMP a.files STOP")
    without = SCRIPT.replace("CREATE PUMP a.files", "CREATE PUMP a.second").replace("INTO files", "INTO more")
    assert pumps.run(without).changes == ("a.files is gone",)
    assert pumps.place.plan.paused == {}  # type: ignore[union-attr]
    pumps.send(1)
    pumps.run(without)
    assert (pumps.files(), pumps.log()) == ([0], [0, 1])


@pytest.mark.slow
def test_pumps_of_a_streaming_dataframe_start_and_stop(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's streaming queries begin and end with the streams that a pump reads."""
    folder, given = tmp_path / "in", list[int]()
    folder.mkdir()

    def add(value: int) -> None:
        (folder / f".{value}").write_text(f'{{"v": {value}}}\n', encoding="utf-8")
        (folder / f".{value}").rename(folder / f"{value}.json")

    def take(batch: rt.Batch) -> None:
        given.extend(batch.table()["v"].to_pylist() if batch.count else [])

    frame = spark.readStream.schema("v BIGINT").json(str(folder))
    made = rt.Pipeline(spark, home=tmp_path / "home").source("events", frame).sink("taker", take)
    query = made.sql("CREATE PUMP p STOPPED AS INSERT INTO taker SELECT STREAM v FROM events").start(tmp_path / "check")
    try:
        add(1)
        query.alter("ALTER PUMP p START")
        until(lambda: given == [1])
        query.alter("ALTER PUMP p STOP")
        until(lambda: not query.engine.sources)
        add(2)
        query.alter("ALTER PUMP p START")
        until(lambda: given == [1, 2])
    finally:
        query.stop()
    assert query.exception is None


# -- crashes ----------------------------------------------------------------------------


def engine_of(pumps: Pumps) -> Engine:
    return pumps.pipeline()._engine(pumps.folder / "check", rt.Limits(), ends=False)


def dead(engine: Engine) -> None:
    """Release the locks of a process that is gone, as the operating system does."""
    for stage in engine.stages.values():
        stage.close()
    engine.checkpoint.release()


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False])
def test_an_order_is_carried_out_once_whether_the_driver_dies_before_or_after_its_tick(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    pumps.order("ALTER PUMP a.files START")
    pumps.send(2)
    pumps.run()
    engine = engine_of(pumps)
    pumps.order("ALTER PUMP * START")
    pumps.send(1)
    change = Checkpoint.change

    def die(place: Checkpoint, plan: Any, entry: Any) -> Any:
        if not before:
            change(place, plan, entry)
        raise Died

    monkeypatch.setattr(Checkpoint, "change", die)
    with pytest.raises(Died):
        altering.take_up(pumps.pipeline(), engine)
    monkeypatch.setattr(Checkpoint, "change", change)
    dead(engine)
    assert len(pumps.orders()) == 1
    pumps.run()
    assert (pumps.files(), pumps.log()) == ([0, 1, 2], [2])
    assert pumps.orders() == []
    assert len(pumps.place.journal.last()["plans"]) == 1  # type: ignore[index]
    assert pumps.verified()


@pytest.mark.slow
def test_a_write_that_fails_leaves_the_order_for_the_next_try(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    pumps.order("ALTER PUMP a.files START")
    pumps.send(2)
    pumps.run()
    engine, pipeline = engine_of(pumps), pumps.pipeline()
    pumps.order("ALTER PUMP * START")
    change = Checkpoint.change

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Checkpoint, "change", full)
    with pytest.raises(OSError, match="No space"):
        altering.take_up(pipeline, engine)
    pumps.send(1)
    assert engine.tick() is not None  # with the plan before the order
    assert (pumps.files(), pumps.log()) == ([0, 1, 2], [])
    monkeypatch.setattr(Checkpoint, "change", change)
    assert altering.take_up(pipeline, engine) == [("a.log is started",)]
    pumps.send(1)
    engine.tick()
    engine.stop()
    assert (pumps.files(), pumps.log()) == ([0, 1, 2, 3], [3])
    assert pumps.verified()


def test_a_stop_waits_until_the_pump_has_its_last_rows(pumps: Pumps) -> None:
    engine = engine_of(pumps)
    pumps.order("ALTER PUMP * START")
    altering.take_up(pumps.pipeline(), engine)
    pumps.send(2)
    engine.hook = dying("after journal")
    with pytest.raises(Died):
        engine.tick()
    dead(engine)
    assert pumps.files() == []
    pumps.order("ALTER PUMP a.files STOP")
    assert pumps.run().changes == ("a.files is stopped",)
    assert (pumps.files(), pumps.log()) == ([0, 1], [0, 1])
    assert pumps.verified()


@pytest.mark.slow
def test_a_death_before_any_write_of_an_order_loses_nothing(pumps: Pumps, tmp_path: Path) -> None:
    pumps.order("ALTER PUMP a.files START")
    pumps.send(2)
    pumps.run()
    engine, images, busy = engine_of(pumps), list[Path](), list[bool]()
    pumps.order("ALTER PUMP * START")
    pumps.send(1)

    def keep(_what: str, _path: str) -> None:
        if not busy:  # copying elsewhere writes too
            busy.append(True)
            images.append(tmp_path.with_name(f"{tmp_path.name}-{len(images)}"))
            shutil.copytree(pumps.folder, images[-1])
            busy.clear()

    with watched(pumps.folder, keep):
        altering.take_up(pumps.pipeline(), engine)
    dead(engine)
    assert len(images) > 5
    plans = set()
    for number, image in enumerate(images):
        shutil.rmtree(pumps.folder)
        image.rename(pumps.folder)
        plans.add(len(pumps.place.journal.last().get("plans", ())))  # type: ignore[union-attr]
        pumps.run()
        assert (pumps.files(), pumps.orders()) == ([0, 1, 2], [])
        if number % 5 == 0:
            assert pumps.log() == [2]
            assert pumps.verified()
    assert plans == {0, 1}


def test_orders_wait_in_the_order_in_which_they_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, now = place_of(tmp_path), iter((3_000, 2_000, 1_000))
    monkeypatch.setattr(time, "time_ns", lambda: next(now))
    for number in range(3):
        pump_orders.put(place, pump_orders.Order({"p": True}, str(number), number))
    assert [one.text for one in pump_orders.waiting(place, pump_orders.Orders())] == ["0", "1", "2"]


def test_a_folder_that_is_no_checkpoint_has_no_pumps(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"R405 .* is not a checkpoint"):
        rt.alter(tmp_path, "ALTER PUMP p START")
    assert not list(tmp_path.iterdir())
