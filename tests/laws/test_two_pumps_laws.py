"""The law of two pumps into one target: each writes the same rows as alone, whatever happens to the other.

The input is divided into any runs, with writers that leave and return, a driver that dies between commit and publish,
and a new engine each time. The rows of each pump in a log and in a directory are those that it writes alone in one
tick, in its order; a reader of the log gets the merge of the two.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import scan
from rowtime.runtime.sinks.directory import STAGING, DirectorySink, files_of
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.files import remove

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = 1_704_103_200_000_000  # 2024-01-01 10:00 UTC, µs
DEFS = """CREATE STREAM a (n INT, v INT, ev TIMESTAMP);
CREATE STREAM o (n BIGINT NOT NULL, v TINYINT);
CREATE STREAM d (n BIGINT NOT NULL, v TINYINT) USING parquet OPTIONS (path '{out}');
CREATE VIEW t AS SELECT STREAM ev AS ROWTIME, n, v FROM a ORDER BY ev WITHIN INTERVAL '5' SECOND;
"""
PUMPS = {
    "all_of_them": "SELECT STREAM n, v FROM a",
    "sorted": "SELECT STREAM n, v FROM t WHERE n % 3 > 0",
}
RUNS = 3
Written = Mapping[str, tuple[list[Any], list[Any]]]


class Death(Exception):
    """The driver dies here."""


@dataclass(frozen=True)
class Item:
    """A row of a writer, or the writer leaves."""

    writer: str
    row: Mapping[str, Any] | None


def items(seed: int) -> list[list[Item]]:
    """The items that the writers send before each run."""
    chance, found, n = random.Random(seed), [], 0
    clocks = {"w1": START, "w2": START}
    for run in range(RUNS):
        part = []
        for _ in range(chance.randint(3, 8)):
            writer = chance.choice(("w1", "w2"))
            clocks[writer] += chance.randint(0, 2_000_000)
            ev = clocks[writer] - chance.randint(0, 9_000_000)
            v = chance.choice((None, 1, 300))  # 300 is not a TINYINT: the gate of each pump refuses it
            part.append(Item(writer, {"n": n, "v": v, "ev": ev, "rowtime": clocks[writer]}))
            n += 1
        if chance.random() < 0.5 and run < RUNS - 1:
            part.append(Item(chance.choice(("w1", "w2")), None))
        found.append(part)
    return found


def send(folder: Path, part: list[Item], *, end: bool) -> None:
    for writer in ("w1", "w2"):
        with rt.writer("a", home=folder / "home", writer=writer) as log:
            for item in (item for item in part if item.writer == writer and item.row is not None):
                log.insert([item.row])  # type: ignore[list-item]
            if end:
                log.end()
            log.close(leave=Item(writer, None) in part)


def script(folder: Path, names: list[str]) -> str:
    pumps = (f"CREATE PUMP {to}_{n} AS INSERT INTO {to} {PUMPS[n]};" for n in names for to in "od")
    return DEFS.format(out=folder / "out") + "".join(pumps)


def run(spark: SparkSession, folder: Path, names: list[str], dies: str = "") -> None:
    """One run over the present input; it may die at a point of its first tick."""

    def hook(at: str) -> None:
        if at == dies:
            raise Death

    made = rt.Pipeline(spark, home=folder / "home").sql(script(folder, names))
    engine = made._engine(folder / "check", rt.Limits(), ends=False, available_now=True)
    engine.hook = hook
    try:
        while engine.tick() is not None:
            pass
    except Death:
        pass
    finally:
        engine.stop()


def define(folder: Path) -> None:
    made = rt.Pipeline(home=folder / "home").sql(script(folder, list(PUMPS)))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)


def written(folder: Path, names: list[str]) -> Written:
    """The rows in the log and in the directory, by pump."""
    log, identity = folder / "home" / "logs" / "o", Checkpoint(folder / "check").identity
    there = scan(log, {})
    found = {}
    for name in names:
        paths = [log / entry.path for entry in there.get(f"pump.o_{name}", []) if isinstance(entry, Rows)]
        rows = [(row["__t"], row["n"], row["v"]) for path in paths for row in pq.read_table(path).to_pylist()]
        files = files_of(folder / "out", f"d_{name}", identity)
        kept = [(row["rowtime"], row["n"], row["v"]) for path in files for row in pq.read_table(path).to_pylist()]
        found[name] = rows, kept
    return found


def law(spark: SparkSession, folder: Path, seed: int) -> None:
    """Check the law for the items of a seed."""
    sent, alone = items(seed), {}
    for name in PUMPS:
        own = folder / name
        define(own)
        for number, part in enumerate(sent):
            send(own, part, end=number == RUNS - 1)
            if any(item.row is None for item in part):
                run(spark, own, [name])  # the place of a leave is a fact from outside, the same in every run
        run(spark, own, [name])
        alone |= written(own, [name])
    both, chance = folder / "both", random.Random(seed)
    define(both)
    for number, part in enumerate(sent):
        send(both, part, end=number == RUNS - 1)
        run(spark, both, list(PUMPS), chance.choice(("before journal", "after journal", "after journal")))
        if any(item.row is None for item in part):
            run(spark, both, list(PUMPS))
    run(spark, both, list(PUMPS))
    together = written(both, list(PUMPS))
    assert together == alone
    assert all(rows == kept for rows, kept in together.values())
    assert rt.verify(both / "check", spark=spark, home=both / "home").equal

    got: list[Any] = []
    reader = rt.Pipeline(spark, home=both / "home").sql("SELECT STREAM n, v FROM o")
    reader.sink("result", lambda batch: got.extend(batch.table().to_pylist()) if batch.count else None)
    reader.run_available(both / "reader")
    merged = sorted((row, name) for name, (rows, _) in together.items() for row in enumerate(rows))
    merged.sort(key=lambda one: (one[0][1][0], one[1], one[0][0]))
    assert [(row["rowtime"], row["n"], row["v"]) for row in got] == [row for (_, row), _ in merged]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 3, 10, *range(12, 16)])
def test_each_of_two_pumps_writes_what_it_writes_alone(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    law(spark, tmp_path, seed)


@pytest.mark.slow
def test_a_recovery_that_sweeps_what_others_staged_breaks_the_law(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def recover(sink: DirectorySink, staged: list[str]) -> None:
        for file in (sink.path / STAGING).rglob("*.parquet"):
            if file.name not in staged:
                remove(file)

    monkeypatch.setattr(DirectorySink, "recover", recover)
    with pytest.raises(AssertionError):
        law(spark, tmp_path, 3)
