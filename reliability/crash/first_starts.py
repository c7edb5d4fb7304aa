"""First starts that die: the definitions and drops of a script count only after its first start has succeeded.

A process of its own kills itself before one of the writes of its first start. The home is then as it was before, or as
it is after the first tick. From there a corrected script begins as if there had been no other, and one that has begun
continues.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import rowtime as rt
from reliability.crash.driver import attached
from reliability.crash.inside import SECONDS, Tally, copied, restored
from reliability.crash.killed import environment
from reliability.crash.writes import watched
from rowtime.client.home import Home
from rowtime.client.log_items import Rows
from rowtime.client.stream_log import scan
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITES = 110  # of a first start, up to its first commit and beyond
DEATHS = 4  # of one number
WRITER = "someone"
SQL = """DROP STREAM IF EXISTS gone; DROP STREAM IF EXISTS again; CREATE STREAM again (n {type});
CREATE STREAM o (n BIGINT) USING parquet OPTIONS (path '{folder}/out/o');
CREATE STREAM merged (n BIGINT NOT NULL);
INSERT INTO again VALUES ({value}), (300);
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM again;
CREATE PUMP q AS INSERT INTO merged SELECT STREAM n FROM again;
CREATE PUMP r AS INSERT INTO merged SELECT STREAM n FROM kept;"""
STREAMS = ("again", "gone", "kept", "merged", "o")
Found = dict[str, Any]


@dataclass(frozen=True)
class FirstStart:
    """A home with three streams, and a script that drops two of them, one of which it defines again."""

    number: int
    folder: Path
    type: str = "INT"
    value: int = 1

    def make(self) -> None:
        """Create the streams that are there before the script, with a row each."""
        home = Home(self.folder / "home")
        for n, name in enumerate(("gone", "again", "kept")):
            home.define(name, {"columns": [{"name": "n", "type": "BIGINT", "nullable": True}]})
            with rt.writer(name, home=home, writer=WRITER) as log:
                log.insert([{"n": n + 100 * self.number}])

    def run(self, spark: SparkSession | None) -> None:
        """Run the script over what is there."""
        sql = SQL.format(folder=self.folder, type=self.type, value=self.value)
        rt.Pipeline(spark, home=self.folder / "home").sql(sql).run_available(self.folder / "check")

    @property
    def has_begun(self) -> bool:
        """True once the first tick is committed."""
        return Checkpoint(self.folder / "check").journal.last() is not None

    def found(self) -> Found:
        """Return the definition of each stream and the rows in its log; and the content of the directory."""
        home = Home(self.folder / "home")
        found: Found = {name: (home.definition(name), _rows(home.log_path(name))) for name in STREAMS}
        return {**found, "names": home.names(), "out": _files(self.folder / "out" / "o")}


def first_starts(spark: SparkSession, folder: Path, tally: Tally, number: int, deaths: int = DEATHS) -> None:
    """Run first starts of one number, each of which is killed before another of its writes."""
    chance, case = random.Random(f"first start {number}"), FirstStart(number, folder / "live")
    case.make()
    before, image = case.found(), copied(case.folder, folder / "image")
    corrected = FirstStart(number, case.folder, "SMALLINT", 7)
    outcomes = {}
    for script in (case, corrected):
        restored(script, image)
        script.run(spark)
        outcomes[script] = script.found()
    for _ in range(deaths):
        restored(case, image)
        at = chance.randrange(WRITES)
        where = f"first start {number}, killed before write {at}"
        status = _killed(case, spark, at, folder / "drivers.log")
        begun = case.has_begun
        tally.add("first starts that died" if status == -signal.SIGKILL else "first starts that came to the end")
        if not begun:
            tally.check(case.found(), before, where)
        script = case if begun else corrected
        script.run(spark)
        tally.check(script.found(), outcomes[script], f"{where}, {'going on' if begun else 'then corrected'}")


def _killed(case: FirstStart, spark: SparkSession, at: int, log: Path) -> int:
    command = [sys.executable, "-m", "reliability.crash.first_starts", str(case.folder), str(case.number), str(at)]
    with log.open("a") as errors:
        return subprocess.run(command, stderr=errors, env=environment(spark), timeout=SECONDS, check=False).returncode


def _rows(log: Path) -> list[Any]:
    found = sorted(scan(log, {}).items()) if log.is_dir() else []
    entries = (entry for _, its in found for entry in its if isinstance(entry, Rows))
    return [n for entry in entries for n in pq.read_table(log / entry.path)["n"].to_pylist()]


def _files(out: Path) -> list[Any]:
    files = sorted(out.glob("part-*"), key=lambda path: path.name.split("-")[1:3])
    return [n for path in files for n in pq.read_table(path)["n"].to_pylist()]


def main(folder: str, number: str, at: str) -> None:
    """Run one first start, which kills itself before a write."""
    seen: list[str] = []

    def dying(what: str, _path: str) -> None:
        seen.append(what)
        if len(seen) == int(at) + 1:
            os.kill(os.getpid(), signal.SIGKILL)

    spark = attached()
    with watched(Path(folder), dying):
        FirstStart(int(number), Path(folder)).run(spark)


if __name__ == "__main__":
    main(*sys.argv[1:])
