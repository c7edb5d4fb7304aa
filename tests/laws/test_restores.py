"""A law with restores: after an older copy of any part, the result is right, or there is a code; never rows twice.

A pipeline copies a stream into a log, a directory and two lake tables; a second one copies the log into another
directory. At a random moment one part is copied, and later restored from that copy, with or without new rows after
that. Or all parts are copied, both copies continue for a while with as many rows, and one of them gets a part of the
other.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

import rowtime as rt
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import scan
from rowtime.core.errors import RowtimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = """
CREATE STREAM s (id INT);
CREATE STREAM t (id INT);
CREATE STREAM d (id INT) USING parquet OPTIONS (path '{0}/d');
CREATE STREAM delta (id INT) USING delta OPTIONS (path '{0}/delta');
CREATE STREAM iceberg (id INT) USING iceberg OPTIONS (table 'db.i', catalog 'here', catalog.type 'sql',
  catalog.uri 'sqlite:///{0}/iceberg/catalog.db', catalog.warehouse 'file://{0}/iceberg');
CREATE PUMP p AS INSERT INTO t SELECT STREAM id FROM s;
CREATE PUMP q AS INSERT INTO d SELECT STREAM id FROM s;
CREATE PUMP u AS INSERT INTO delta SELECT STREAM id FROM s;
CREATE PUMP v AS INSERT INTO iceberg SELECT STREAM id FROM s;
"""
SECOND = """
CREATE STREAM t (id INT);
CREATE STREAM e (id INT) USING json OPTIONS (path '{0}/e');
CREATE PUMP r AS INSERT INTO e SELECT STREAM id FROM t;
"""
PARTS = {
    "home": "home",
    "source log": "home/logs/s",
    "sink log": "home/logs/t",
    "directory": "d",
    "Delta table": "delta",
    "Iceberg table": "iceberg",
    "checkpoint": "first",
    "second checkpoint": "second",
    "second directory": "e",
}
CODES = {"R420", "R440", "R501", "R564"}  # the journal, a source, or a target is not the one of the others


class World:
    """The two pipelines, all rows that were confirmed, and what consumers have taken."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int) -> None:
        self.spark, self.folder, self.draw = spark, folder, random.Random(seed)
        self.consumed: dict[str, list[int]] = {"d": [], "e": []}
        self.sent, self.codes = 0, dict[str, str]()
        (folder / "iceberg").mkdir(parents=True)

    def run(self, name: str) -> None:
        """Run a pipeline; once it has a code, it has one again."""
        sql = {"first": FIRST, "second": SECOND}[name].format(self.folder)
        try:
            pipeline = rt.Pipeline(self.spark, home=self.folder / "home").sql(sql)
            pipeline.run_available(self.folder / name, limits=rt.Limits(files=2))
        except RowtimeError as error:
            self.codes.setdefault(name, error.problems[0].code)
        else:
            assert name not in self.codes, f"{name} went on after {self.codes[name]}"

    def send(self) -> None:
        with rt.writer("s", writer=self.draw.choice("ab"), home=self.folder / "home") as log:
            for _ in range(self.draw.randint(1, 2)):
                count = self.draw.randint(1, 3)
                log.insert([{"id": self.sent + n, "rowtime": self.sent + n} for n in range(count)])
                self.sent += count

    def end(self) -> None:
        """End all writers, so that no row waits for another one."""
        log = self.folder / "home" / "logs" / "s"
        for name in [*scan(log, {})] if log.exists() else ():
            with rt.writer("s", writer=name, home=self.folder / "home") as writer:
                writer.end()

    def consume(self, name: str) -> None:
        for path in sorted((self.folder / name).glob("part-*")):
            self.consumed[name] += ids(path)
            path.unlink()

    def step(self) -> None:
        self.send()
        for name in ("first", "second"):
            if self.draw.random() < 0.7:
                self.run(name)
        for name in self.consumed:
            if self.draw.random() < 0.3:
                self.consume(name)

    def fork(self, steps: int, aside: Path) -> None:
        """Take steps twice, with other rows and from the same state, and leave what the first time gives aside."""
        start, consumed = (self.sent, self.draw.getstate()), {name: [*ids] for name, ids in self.consumed.items()}
        shutil.copytree(self.folder, aside.parent / "start")
        for _ in range(steps):
            self.step()
        self.folder.rename(aside)
        (aside.parent / "start").rename(self.folder)
        (self.sent, state), self.consumed = start, consumed
        self.draw.setstate(state)
        self.sent += 1_000
        for _ in range(steps):
            self.step()

    def finish(self) -> None:
        self.end()
        for _ in range(2):
            self.run("first")
            self.run("second")
        for name in self.consumed:
            self.consume(name)

    def tables(self) -> dict[str, Counter[int]]:
        folder = self.folder / "iceberg"
        catalog = load_catalog("here", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}", type="sql")
        tables = {"delta": DeltaTable(self.folder / "delta").to_pyarrow_table()}
        tables["iceberg"] = catalog.load_table("db.i").scan().to_arrow()
        return {name: Counter(table["id"].to_pylist()) for name, table in tables.items()}

    def check(self, what: str) -> None:
        """Each pipeline has stopped with a code, or its targets have the rows of its source, each once."""
        assert set(self.codes.values()) <= CODES, self.codes
        received = {name: Counter(of_target) for name, of_target in self.consumed.items()}
        if what not in ("directory", "second directory"):  # a restored directory shows again what a consumer has had
            assert max((n for of_target in received.values() for n in of_target.values()), default=1) == 1
        if "first" not in self.codes:
            assert set(received["d"]) == set(self.log("s"))
            assert self.log("t") == self.log("s")
            assert received["d"] == self.log("s") or what == "directory"
            assert self.tables() == {"delta": self.log("s"), "iceberg": self.log("s")}
        if "second" not in self.codes:
            assert set(received["e"]) == set(self.log("t"))
            assert received["e"] == self.log("t") or what == "second directory"

    def log(self, name: str) -> Counter[int]:
        log = self.folder / "home" / "logs" / name
        found = [e for of_writer in scan(log, {}).values() for e in of_writer if isinstance(e, Rows)]
        return Counter(number for entry in found for number in ids(log / entry.path))


def ids(path: Path) -> list[int]:
    if path.suffix == ".json":
        return [json.loads(line)["id"] for line in path.read_text().splitlines()]
    return list(pq.read_table(path)["id"].to_pylist())


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("what", PARTS)
def test_a_restored_part_gives_the_right_rows_or_a_code(
    spark: SparkSession, tmp_path: Path, what: str, seed: int
) -> None:
    world = World(spark, tmp_path, seed)
    draw, part = random.Random(f"{what} {seed}"), tmp_path / PARTS[what]
    world.run("first")
    for _ in range(draw.randint(1, 3)):
        world.step()
    world.run("second")
    copy = tmp_path / "copy"
    if part.exists():
        shutil.copytree(part, copy)
    for _ in range(draw.randint(0, 2)):
        world.step()
    if part.exists():
        shutil.rmtree(part)
    if copy.exists():
        shutil.copytree(copy, part)
    if draw.random() < 0.7:
        for _ in range(draw.randint(1, 4)):
            world.send()
    world.finish()
    world.check(what)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("what", PARTS)
def test_a_part_of_another_copy_gives_the_right_rows_or_a_code(
    spark: SparkSession, tmp_path: Path, what: str, seed: int
) -> None:
    world = World(spark, tmp_path / "world", seed)
    draw, part = random.Random(f"{what} {seed} fork"), world.folder / PARTS[what]
    world.run("first")
    for _ in range(draw.randint(0, 2)):
        world.step()
    world.fork(draw.randint(1, 2), tmp_path / "aside")
    if part.exists():
        shutil.rmtree(part)
    if (other := tmp_path / "aside" / PARTS[what]).exists():
        shutil.copytree(other, part)
    for _ in range(draw.randint(0, 2)):
        world.send()
    world.finish()
    world.check(what)


RESTORED = test_a_restored_part_gives_the_right_rows_or_a_code
COPIED = test_a_part_of_another_copy_gives_the_right_rows_or_a_code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "what", "check", "answer"),
    [
        (RESTORED, "source log", "client.stream_log._check_chain", None),
        (
            test_a_restored_part_gives_the_right_rows_or_a_code,
            "directory",
            "runtime.sinks.directory.DirectorySink._compare",
            None,
        ),
        (
            test_a_part_of_another_copy_gives_the_right_rows_or_a_code,
            "sink log",
            "runtime.sinks.stream_log.StreamLogSink._of_another",
            False,
        ),
        (
            test_a_part_of_another_copy_gives_the_right_rows_or_a_code,
            "Delta table",
            "runtime.sinks.ownership.Claim.knows",
            True,
        ),
        (
            test_a_part_of_another_copy_gives_the_right_rows_or_a_code,
            "Iceberg table",
            "runtime.sinks.ownership.Claim.knows",
            True,
        ),
    ],
)
def test_the_laws_find_each_missing_check(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    law: Callable[[SparkSession, Path, str, int], None],
    what: str,
    check: str,
    *,
    answer: bool | None,
) -> None:
    monkeypatch.setattr(f"rowtime.{check}", lambda *_: answer)
    broken = 0
    for seed in range(6):
        (tmp_path / str(seed)).mkdir()
        try:
            law(spark, tmp_path / str(seed), what, seed)
        except AssertionError:
            broken += 1
    assert broken
