"""Runs with ``--available-now``, one after the other, as a scheduler starts them: files and clients come in between.

Each run is repeated from the content of the disk before one of its writes, as if its process had died there. The state
after it must be the same, none of the input may be refused, and in the end one batch over the whole input must give the
same rows as the sequence.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rowtime as rt
from reliability.crash.cases import START, Case
from reliability.crash.inside import Tally, copied, restored
from reliability.crash.writes import watched
from rowtime.core.time import to_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RUNS = 3  # of a sequence; the last one ends the stream
WRITES = 40  # of a run; one that has fewer runs through
MINUTE = 60_000_000  # µs
SQL = """
CREATE STREAM orders (at TIMESTAMP, n BIGINT, k STRING) USING json
  OPTIONS (path '{folder}/in', rowtime.column 'at');
CREATE STREAM a (at TIMESTAMP, n BIGINT, k STRING);
CREATE STREAM minutes (k STRING, c BIGINT, total BIGINT) USING parquet OPTIONS (path '{folder}/out/minutes');
CREATE STREAM merged (k STRING, n BIGINT);
CREATE VIEW sorted AS SELECT STREAM at AS ROWTIME, n, k FROM a ORDER BY at WITHIN INTERVAL '1' MINUTE;
CREATE PUMP p1 AS INSERT INTO minutes SELECT STREAM k, COUNT(*) AS c, SUM(n) AS total FROM orders
  GROUP BY FLOOR(orders.ROWTIME TO MINUTE), k;
CREATE STREAM both (k STRING NOT NULL, n TINYINT CHECK (n < 8)) USING json OPTIONS (path '{folder}/out/both');
CREATE PUMP p2 AS INSERT INTO merged SELECT STREAM k, n FROM sorted;
CREATE PUMP p3 AS INSERT INTO both SELECT STREAM k, n FROM orders;
CREATE PUMP p4 AS INSERT INTO both SELECT STREAM k, n FROM sorted;
CREATE PUMP p5 AS INSERT INTO merged SELECT STREAM k, n FROM a WHERE n > 4;
"""


class Sequence(Case):
    """A directory that receives files, and a stream log whose writers begin, leave and come back.

    Two pumps write to each of two targets, one of which refuses values.
    """

    @property
    def name(self) -> str:
        return "runs"

    def script(self) -> str:
        return SQL.format(folder=self.folder)

    def make(self) -> None:
        (self.folder / "in").mkdir(parents=True)
        self.define()

    def come(self, run: int, chance: random.Random) -> int:
        """Write the input before a run. Return how many rows both streams have had until then."""
        rows = [self._row(chance, run) for _ in range(chance.randint(1, 4))]
        text = "".join(json.dumps({**row, "at": _text(_at(row))}) + "\n" for row in sorted(rows, key=_at))
        (self.folder / "in" / f"{run}.json").write_text(text)
        for writer in chance.sample(("w1", "w2", "w3"), 2):
            with rt.writer("a", home=self.folder / "home", writer=writer) as log:
                log.insert([{**row, "rowtime": row["at"]} for row in sorted(rows, key=_at)])
                log.close(leave=chance.random() < LEAVES)
        return len(rows)

    def _row(self, chance: random.Random, run: int) -> dict[str, Any]:
        return {
            "at": START + run * 2 * MINUTE + chance.randint(0, 119) * 1_000_000,
            "n": chance.randint(0, 9),
            "k": "k",
        }

    def run(self, spark: SparkSession, *, end: bool) -> None:
        """Run over what is there, with a driver of its own."""
        self.pipeline(spark).run_available(self.folder / "check", end=end)


LEAVES = 0.6


def sequences(spark: SparkSession, folder: Path, tally: Tally, number: int) -> None:
    """Run one sequence; each of its runs dies once, at a random write."""
    case, chance = Sequence(number, folder / "live"), random.Random(f"runs {number}")
    case.make()
    rows = 0
    for run in range(RUNS):
        rows += case.come(run, chance)
        where, end = f"runs {number}, run {run}", run == RUNS - 1
        image = _run(case, spark, folder / "image", chance.randrange(WRITES), end=end)
        wanted = case.state()
        if image is not None:
            restored(case, image)
            case.run(spark, end=end)
            tally.check(case.state(), wanted, where)
            tally.add("runs that died")
        totals = wanted["totals"]
        found = {gate: totals[gate].get("accepted", 0) for gate in ("orders", "a")}
        tally.check({"accepted": found}, {"accepted": {"orders": rows, "a": 2 * rows}}, where)
    found_equal = rt.verify(case.folder / "check", case.pipeline(spark))
    tally.check({"verify": found_equal.equal}, {"verify": True}, f"runs {number}: {found_equal.outputs}")
    tally.add("sequences of runs")


def _run(case: Sequence, spark: SparkSession, place: Path, at: int, *, end: bool) -> Path | None:
    """Run to the end. Return the content of the disk before the write ``at``, if there are that many writes."""
    seen: list[str] = []
    images: list[Path] = []

    def keep(what: str, _path: str | Path) -> None:
        seen.append(what)
        if len(seen) == at + 1 and not images:
            images.append(copied(case.folder, place))

    with watched(case.folder, keep):
        case.run(spark, end=end)
    return images[0] if images else None


def _text(at: int) -> str:
    return to_text(at).replace(" ", "T") + "Z"


def _at(row: Mapping[str, Any]) -> int:
    return int(row["at"])
