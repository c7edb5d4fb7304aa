"""Pipelines over random data: the SQL examples' shapes with every kind of sink, and queries of Nexmark.

A case lives in one folder, which is all that a death leaves: inputs, home, checkpoint, outputs. All of its input is
there from the beginning, and a tick takes one file of each stream, so that every run has the same ticks.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

import rowtime as rt
from examples.nexmark import events, queries
from rowtime.client.stream_log import Rows, scan
from rowtime.core.time import END
from rowtime.state.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine

ONE_FILE = rt.Limits(files=1)
TICKS = 3  # that take rows
STREAMS = "CREATE STREAM a (k STRING, v BIGINT, ev TIMESTAMP); CREATE STREAM b (k STRING, v BIGINT, ev TIMESTAMP);\n"
SORTED = """CREATE VIEW sa AS SELECT STREAM ev AS ROWTIME, k, v FROM a ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE VIEW sb AS SELECT STREAM ev AS ROWTIME, k, v FROM b ORDER BY ev WITHIN INTERVAL '20' SECOND;
"""
SHAPES: Mapping[str, str] = {
    "sorted groups": """
CREATE STREAM minutes (k STRING, c BIGINT, total BIGINT) USING parquet OPTIONS (path '{out}/minutes');
CREATE STREAM refused (k STRING, reason STRING) USING json OPTIONS (path '{out}/refused');
CREATE STREAM merged (k STRING, v BIGINT);
CREATE VIEW both AS SELECT STREAM k, v FROM sa UNION ALL SELECT STREAM k, v FROM sb;
CREATE PUMP p1 AS INSERT INTO minutes SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM both AS x
  GROUP BY FLOOR(x.ROWTIME TO MINUTE), k;
CREATE PUMP p2 AS INSERT INTO refused SELECT STREAM k, reason FROM sa.rejected;
CREATE PUMP p3 AS INSERT INTO merged SELECT STREAM k, v FROM both;
""",
    "joined windows": """
CREATE STREAM pairs (k STRING, v BIGINT, other BIGINT) USING parquet OPTIONS (path '{out}/pairs');
CREATE PUMP p1 AS INSERT INTO pairs SELECT STREAM l.k, l.v, r.v AS other
  FROM sa OVER (RANGE INTERVAL '30' SECOND PRECEDING) AS l
  JOIN sb OVER (RANGE INTERVAL '30' SECOND PRECEDING) AS r ON l.k = r.k;
""",
    "sums over frames": """
CREATE STREAM sums (k STRING, v BIGINT, total BIGINT) USING csv OPTIONS (path '{out}/sums', header 'true');
CREATE PUMP p1 AS INSERT INTO sums SELECT STREAM k, v, SUM(v) OVER (PARTITION BY k ORDER BY x.ROWTIME
  RANGE INTERVAL '1' MINUTE PRECEDING) AS total FROM sa AS x;
""",
    "sessions": """
CREATE STREAM visits (k STRING, c BIGINT) USING parquet OPTIONS (path '{out}/visits');
CREATE PUMP p1 AS INSERT INTO visits SELECT STREAM k, COUNT(*) AS c FROM sa AS x
  GROUP BY SESSION(x.ROWTIME, INTERVAL '20' SECOND), k;
""",
    "hops": """
CREATE STREAM hops (k STRING, c BIGINT) USING parquet OPTIONS (path '{out}/hops', ordered 'true');
CREATE PUMP p1 AS INSERT INTO hops SELECT STREAM k, COUNT(*) AS c FROM sb AS x
  GROUP BY HOP(x.ROWTIME, INTERVAL '20' SECOND, INTERVAL '1' MINUTE), k;
""",
}
NEXMARK = ("q0", "q2", "q3", "q5", "q7", "q8", "q11", "q13", "q14", "q16", "q17", "q20")
State = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One pipeline over the data of a number, in one folder."""

    number: int
    folder: Path

    @property
    def name(self) -> str:
        """Which pipeline it is."""
        kinds = (*SHAPES, *NEXMARK)
        return kinds[self.number % len(kinds)]

    def make(self) -> None:
        """Write all input."""
        if self.name in NEXMARK:
            events.write(self.folder / "in", 900 + self.number % 7 * 50, TICKS)
            return
        made = self.pipeline(None)
        for stream in (one for one in made.compile().defines if one.format == "log"):  # the others have paths
            made.home.define(stream.name, stream.as_json(), replace=True)
        chance = random.Random(f"crash {self.number}")
        for tick in range(TICKS):
            for stream in "ab":
                for writer in ("w1", "w2"):
                    with rt.writer(stream, home=self.folder / "home", writer=writer) as log:
                        log.insert([_row(chance, tick) for _ in range(chance.randint(1, 5))])
                        if tick == TICKS - 1:
                            log.end()

    def pipeline(self, spark: SparkSession | None) -> rt.Pipeline:
        """The pipeline; a function appends its rows to a file with their sequence numbers."""
        if self.name in NEXMARK:
            made = queries.pipeline(self.name, self.folder / "in", self.folder / "home", spark)
            return made.sink("result", _appending(self.folder / "received.jsonl"))
        text = STREAMS + SORTED + SHAPES[self.name].format(out=self.folder / "out")
        return rt.Pipeline(spark, home=self.folder / "home").sql(text)

    def engine(self, spark: SparkSession | None) -> Engine:
        """A driver, which begins with recovery."""
        return self.pipeline(spark)._engine(self.folder / "check", ONE_FILE, ends=True)  # noqa: SLF001 - tick by tick

    @property
    def tick(self) -> int:
        """The last tick that is committed; -1 for none."""
        last = Checkpoint(self.folder / "check").journal.last()
        return -1 if last is None else int(last["tick"])

    def state(self) -> State:
        """What is there after recovery: rows with sequence numbers, refused rows, ledger, bounds."""
        place = Checkpoint(self.folder / "check")
        entry = place.journal.last()
        if entry is None:
            return {"files": _files(self.folder / "out"), "log": [], "received": [], "totals": {}}
        gates = {gate: place.rejected(gate, entry["tick"]) for gate in entry["totals"]}
        return {
            "files": _files(self.folder / "out"),
            "log": _logged(self.folder / "home" / "logs" / "merged"),
            "received": _received(self.folder / "received.jsonl"),
            "totals": entry["totals"],
            "rejected": {gate: sorted(map(repr, _rows(paths))) for gate, paths in gates.items() if paths},
            "sinks": {name: control for name, control in entry["control"].items() if "sequence" in control},
            "clocks": entry["clocks"],
            "adds up": all(
                counts["in"] == sum(n for reason, n in counts.items() if reason != "in")
                for counts in entry["totals"].values()
            ),
        }


def close(engine: Engine) -> None:
    """What the death of a process does to its locks."""
    engine.close()
    engine.stop()


def _row(chance: random.Random, tick: int) -> dict[str, Any]:
    at = START + (tick * 40 + chance.randint(0, 50)) * 1_000_000
    late = chance.random() < 0.1
    return {
        "k": f"k{chance.randint(0, 2)}",
        "v": chance.choice((None, *range(9))),
        "ev": None if chance.random() < 0.1 else START if late else at,
    }


START = 1_704_103_200_000_000  # 2024-01-01 10:00 UTC, µs
assert START < END


def _appending(path: Path) -> Callable[[rt.Batch], None]:
    def take(batch: rt.Batch) -> None:
        if not batch.count:
            return
        rows = enumerate(batch.table().to_pylist(), batch.first)
        with path.open("a") as file:
            file.write("".join(json.dumps([number, repr(row)]) + "\n" for number, row in rows))
            file.flush()
            os.fsync(file.fileno())

    return take


def _received(path: Path) -> list[str]:
    """The rows by their numbers; one that came twice must be the same, and a torn line is one that was not received."""
    found: dict[int, str] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            number, row = json.loads(line)
        except ValueError:
            continue
        if found.setdefault(number, row) != row:
            return [f"row {number} is {found[number]} and {row}"]
    if sorted(found) != list(range(len(found))):
        return [f"numbers are missing: {sorted(found)}"]
    return [found[number] for number in range(len(found))]


def _files(out: Path) -> dict[str, list[str]]:
    """What a plain reader sees of each directory, as a set of rows or lines."""
    folders = sorted(out.iterdir()) if out.is_dir() else []
    found = {folder.name: sorted(p for p in folder.glob("*") if p.name[0] not in "_.") for folder in folders}
    return {name: sorted(repr(row) for path in paths for row in _seen(path)) for name, paths in found.items() if paths}


def _seen(path: Path) -> list[Any]:
    if path.suffix == ".parquet":
        return _rows([path])
    lines = path.read_text().splitlines()
    return lines[1:] if path.suffix == ".csv" else lines


def _rows(paths: list[Path]) -> list[Any]:
    return [row for path in paths for row in pq.read_table(path, partitioning=None).to_pylist()]


def _logged(log: Path) -> list[str]:
    """The rows of the log in their order, which are their sequence numbers."""
    entries = next(iter(scan(log, {}).values()), []) if log.is_dir() else []
    rows = (row for entry in entries if isinstance(entry, Rows) for row in _rows([log / entry.path]))
    return [repr({name: value for name, value in row.items() if name not in ("__p", "__a")}) for row in rows]
