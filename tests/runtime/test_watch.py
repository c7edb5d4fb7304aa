"""While a tick computes, its driver reports the current step: to the query, to displays, in the checkpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import rowtime as rt
from rowtime.cli.display import Display
from rowtime.core.stores import place_of
from rowtime.runtime import pulse
from rowtime.runtime.meter import Meter
from rowtime.runtime.sources.contract import Backlog, Limits
from rowtime.runtime.watch import Watch
from rowtime.state import liveness as words_of
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.liveness import DRIVER, Liveness, Sign, give_sign, liveness
from rowtime.state.under_way import UnderWay

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM s (n INT); CREATE STREAM o (n INT);
CREATE PUMP p STARTED AS INSERT INTO o SELECT STREAM n FROM s"""


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def pipeline(spark: SparkSession, home: Path, files: int = 1) -> rt.Pipeline:
    made = rt.Pipeline(spark, home=home).sql(SQL)
    made.home.define("s", made.compile().defines[0].as_json(), replace=True)
    with rt.writer("s", home=home, writer="w") as log:
        for number in range(files):
            log.insert([{"rowtime": f"2024-01-01 00:00:0{number}", "n": number}])
    return made


def test_a_tick_that_takes_long_is_shown_everywhere(spark: SparkSession, tmp_path: Path) -> None:
    place = tmp_path / "check"
    go, written = threading.Event(), threading.Event()
    made = pipeline(spark, tmp_path / "home")

    def wait(_: rt.Batch) -> None:
        written.set()
        go.wait(60)

    query = made.sink("o", wait).start(place)
    try:
        assert written.wait(60)
        display = Display(query, plain=True)
        wait_for(lambda: query.status["message"].startswith("tick 0: "))
        words = query.status["message"]
        assert words.startswith("tick 0: writing output (sink p.sink: write output), 1 row, for ")
        assert query._repr_html_().startswith("<div><strong>tick 0: writing output")
        assert display._seen().doing.startswith("tick 0: writing output")
        assert display._seen().reached["s"].left == 1, "what is being read is not read yet"
        wait_for(lambda: liveness(place).under_way is not None)
        seen = liveness(place)
        assert (seen.state, seen.under_way.words(0).partition(",")[0]) == ("running", words.partition(",")[0])  # type: ignore[union-attr]
        go.set()
        wait_for(lambda: liveness(place).under_way is None)
        assert display._seen().doing == ""
    finally:
        go.set()
        query.stop()
    assert liveness(place).state == "stopped"
    assert not (place / DRIVER).exists(), "quick ticks and ended runs leave no word"


def test_a_query_is_active_only_while_a_tick_runs(spark: SparkSession, tmp_path: Path) -> None:
    go, written = threading.Event(), threading.Event()

    def wait(_: rt.Batch) -> None:
        written.set()
        go.wait(60)

    def told(message: str, *, data: bool, tick: bool) -> dict[str, object]:
        return {"message": message, "isDataAvailable": data, "isTriggerActive": tick}

    made = pipeline(spark, tmp_path / "home", files=0)
    query = made.sink("o", wait).start(tmp_path / "check")
    try:
        idle = told("Waiting for data to arrive", data=False, tick=False)
        wait_for(lambda: query.status == idle)
        with rt.writer("s", home=tmp_path / "home", writer="w") as log:
            log.insert([{"rowtime": "2024-01-01 00:00:00", "n": 1}])
        assert written.wait(60)
        busy = query.status
        assert (busy["isDataAvailable"], busy["isTriggerActive"]) == (True, True)
        assert busy["message"] == "Processing new data" or busy["message"].startswith("tick ")
        go.set()
        wait_for(lambda: query.status == idle)
    finally:
        go.set()
        query.stop()
    assert query.status == told("Stopped", data=False, tick=False)


def test_data_waits_while_ticks_leave_some_of_it_or_fail() -> None:
    watch, meter = Watch(), Meter()
    running: Any = SimpleNamespace(jobs=[])

    def tick(left: int, error: Exception | None = None, *, reads: bool = True) -> bool:
        part: Any = SimpleNamespace(rows=2, backlog=Backlog("rows", 2, left))
        with suppress(OSError), watch:
            watch.begins(1, meter)
            assert not watch.active, "a look for input is no tick"
            if reads:
                watch.reads(running, {"s": SimpleNamespace(part=part, source=SimpleNamespace(decodes=False))})  # type: ignore[dict-item]
                assert (watch.active, watch.available) == (True, True)
            if error is not None:
                raise error
        assert not watch.active
        return watch.available

    assert tick(left=3)
    assert not tick(left=0)
    assert tick(left=0, error=OSError("no disk")), "the next try reads the same"
    assert tick(left=0, error=OSError("no broker"), reads=False), "and it is not known that there is nothing"
    assert not tick(left=0, reads=False)


def test_in_a_bucket_a_driver_writes_signs_of_life_until_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "IN_A_BUCKET", 0.1)
    place, watch = place_of("memory://pulse/check"), Watch()
    context = SimpleNamespace(uiWebUrl="http://127.0.0.1:4040")
    engine = SimpleNamespace(checkpoint=Checkpoint(place), watch=watch, spark=SimpleNamespace(sparkContext=context))
    meter = Meter()
    meter.began -= 5_000_000_000  # five seconds ago
    with pulse.Pulse(engine), watch:  # type: ignore[arg-type]
        assert (liveness(place).state, liveness(place).under_way) == ("running", None)
        watch.begins(8, meter)
        wait_for(lambda: liveness(place).under_way is not None)
        seen = liveness(place)
        assert (seen.state, seen.page) == ("running", "http://127.0.0.1:4040")
        assert seen.under_way is not None
        assert seen.under_way.tick == 8
    assert liveness(place) == Liveness("stopped")


def test_in_a_bucket_a_driver_without_a_sign_of_life_has_crashed() -> None:
    place = place_of("memory://signs/check")
    assert liveness(place).state == "unknown", "an older version leaves no word"
    now = time.time_ns() // 1000
    give_sign(place, Sign(now, 17, every=10))
    assert (liveness(place).state, liveness(place).process) == ("running", 17)
    give_sign(place, Sign(now - 31_000_000, 17, every=10))
    assert (liveness(place).state, liveness(place).process) == ("crashed", 17)
    give_sign(place, Sign(now - 31_000_000, 17, every=10, ended=True))
    assert liveness(place).state == "stopped"
    words_of.note_failure(place, OSError("gone"), 1, ended=True)
    assert liveness(place).state == "crashed"


def test_a_damaged_sign_of_life_is_ignored(tmp_path: Path) -> None:
    (tmp_path / DRIVER).write_text('{"at": 1')
    assert liveness(tmp_path).under_way is None
    (tmp_path / DRIVER).write_bytes(words_of.sealed({"at": "soon"}))
    assert liveness(tmp_path).under_way is None


def test_the_parts_of_a_tick_are_distinguished() -> None:
    watch, meter = Watch(), Meter()
    assert watch.now is None
    with watch:
        watch.begins(3, meter)
        with meter.part("input"):
            assert watch.now is not None
            assert watch.now.words(meter.began // 1000 + 2_000_000) == "tick 3: looking for input, for 2 s"
        assert watch.now.part == "plan"
        with meter.part("clock"), meter.part("jobs"):
            assert watch.now.part == "clock", "a part inside of another one is a piece of that"
    assert watch.now is None
    at_most = UnderWay(1, 0, "jobs", 12_000, at_most=True, what="group g: groups")
    assert at_most.words(0) == "tick 1: computing with Spark (group g: groups), at most 12,000 rows (by bytes), for 0 s"
    assert UnderWay.of(at_most.as_json()) == at_most


def test_the_end_of_a_backlog_is_known(spark: SparkSession, tmp_path: Path) -> None:
    made, found = pipeline(spark, tmp_path / "home", files=5).sink("o", lambda _: None), []
    made.run_available(tmp_path / "c", limits=Limits(rows=2), listener=found.append)
    told = [source["backlog"] for progress in found for source in progress["sources"]]
    assert told == [{"unit": "rows", "taken": taken, "left": left} for taken, left in ((2, 3), (2, 1), (1, 0))]


def test_the_backlog_of_files_is_in_bytes(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.csv").write_text(f"{number}\n")
    text = f"CREATE STREAM s (n INT) USING csv OPTIONS (path '{tmp_path / 'in'}'); SELECT STREAM n FROM s"
    made, found = rt.Pipeline(spark, home=tmp_path / "home").sql(text), []
    made.sink("result", lambda _: None).run_available(tmp_path / "c", limits=Limits(files=2), listener=found.append)
    told = [source["backlog"] for progress in found for source in progress["sources"]]
    assert told == [{"unit": "bytes", "taken": 4, "left": 2}, {"unit": "bytes", "taken": 2, "left": 0}]
    assert Backlog(**told[0]).left == 2
