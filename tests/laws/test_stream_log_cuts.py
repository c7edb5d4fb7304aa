"""Items in an embedded stream log give the same results with every cut into ticks."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.client.writer import Writer
from rowtime.core.time import END
from rowtime.runtime.sinks.contract import Batch
from tests.laws.pipelines import HALF, LONG, ORIGIN
from tests.oracle import feed as f
from tests.oracle.merge import merge
from tests.oracle.stream import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(8)

SQL = "CREATE STREAM s (n INT); CREATE PUMP p AS INSERT INTO out SELECT STREAM n FROM s"
SCHEMA = pa.schema([("n", pa.int32())])
Step = tuple[str, str, int, int]  # writer, what, its time or END (µs), when it arrives (µs)


def given(writer: str, at: int) -> Step:
    return (writer, "given", ORIGIN + at * HALF, ORIGIN)


def arriving(writer: str, at: int) -> Step:
    return (writer, "arriving", 0, ORIGIN + at * HALF)


def bound(writer: str, at: int) -> Step:
    return (writer, "bound", END if at >= END else ORIGIN + at * HALF, ORIGIN)


def feed_of(steps: list[Step]) -> dict[str, list[f.Item]]:
    found: dict[str, list[f.Item]] = {}
    clock: dict[str, int] = {}
    for number, (writer, what, at, arrived) in enumerate(steps):
        items = found.setdefault(writer, [])
        if what == "bound":
            items.append(f.Bound(at))
            continue
        clock[writer] = max(clock.get(writer, 0), arrived)
        items.append(f.Row(at if what == "given" else None, {"n": number}, clock[writer]))
    return found


def run(spark: SparkSession, home: Path, steps: list[Step], cut: list[int]) -> tuple[list[Any], set[Any]]:
    """Write and read in turn; every writer writes first, so that all are known from the start."""
    rows: list[Any] = []

    def take(batch: Batch) -> None:
        if batch.count:
            rows.extend(batch.table().to_pylist())

    made = rt.Pipeline(spark, home=home).sql(SQL).sink("out", take)
    engine = made._engine(home / "check", rt.Limits(), ends=False)
    source: Any = engine.sources["s"]
    source._clock = lambda: 0  # a reading raises no clock, so nothing depends on the time of reading
    now = [0]
    writers = {
        name: Writer(made.home.log_path("s"), name, SCHEMA, clock=lambda: now[0])
        for name in {step[0] for step in steps}
    }
    for number, (name, what, at, arrived) in enumerate(steps):
        now[0] = arrived
        if what == "bound":
            writers[name].set_rowtime_bound(at)
        else:
            writers[name].insert([{"n": number, **({"rowtime": at} if what == "given" else {})}])
        if number + 1 in cut:
            engine.tick()
    engine.tick()
    refused = set()
    for path in engine.checkpoint.rejected("s", engine.entry["tick"]):
        refused |= {(row["n"], row["reason"]) for row in pq.read_table(path).to_pylist()}
    for writer in writers.values():
        writer.close()
    engine.stop()
    return [(row["rowtime"], row["n"]) for row in rows], refused


def expected(steps: list[Step]) -> tuple[list[Any], set[Any]]:
    judged = stream("s", feed_of(steps))
    rows = [(row.at, row.values["n"]) for row in f.rows_of(merge(judged.feed)[""])]
    return rows, {(refusal.values["n"], refusal.reason) for refusal in judged.refused}


def agree(spark: SparkSession, folder: Path, steps: list[Step], cut: list[int]) -> None:
    rows, refused = run(spark, folder, steps, cut)
    wanted, wanted_refused = expected(steps)
    assert [(int(at.timestamp()) * 1_000_000 + at.microsecond, n) for at, n in rows] == wanted
    assert refused == wanted_refused


WORKED = {
    "a row below a bound between ordered rows": [given("x", 1), bound("x", 4), given("x", 2), given("x", 5)],
    "an arrival before a bound is raised to it": [arriving("x", 1), bound("x", 4), arriving("x", 2), arriving("x", 6)],
    "a row with a rowtime after the end": [given("x", 1), bound("x", END), given("x", 2)],
    "a row without a rowtime after the end": [arriving("x", 1), bound("x", END), arriving("x", 2)],
    "a row without a rowtime after one with": [given("x", 5), arriving("x", 1), bound("x", 7), arriving("x", 2)],
}


@pytest.mark.parametrize("name", WORKED)
@pytest.mark.parametrize("cut", [[], [1], [2]], ids=["one tick", "cut after 1", "cut after 2"])
def test_the_worked_cases_do_not_depend_on_the_cut(
    spark: SparkSession, tmp_path: Path, name: str, cut: list[int]
) -> None:
    agree(spark, tmp_path, WORKED[name], cut)


@pytest.mark.parametrize("seed", range(60 if LONG else 4))
def test_random_items_do_not_depend_on_the_cut(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    writers = chance.choice(["x", "xy"])
    modes = {writer: chance.choice(["given", "arriving"]) for writer in writers}
    steps, now = [], 0
    for number in range(chance.randint(4, 9)):
        writer = writers[number] if number < len(writers) else chance.choice(writers)
        now = max(0, now + chance.choice([-1, 0, 1, 1, 2]))
        kind = "bound" if number >= len(writers) and chance.random() < 0.4 else modes[writer]
        at = END if kind == "bound" and chance.random() < 0.1 else now + chance.choice([-1, 0, 2])
        steps.append({"bound": bound, "given": given, "arriving": arriving}[kind](writer, at))
    cut = sorted(chance.sample(range(len(writers), len(steps) + 1), 2))
    agree(spark, tmp_path / "one", steps, [])
    agree(spark, tmp_path / "cut", steps, cut)
