"""Checkpoints as a driver leaves them, made without Spark: journals of any length, with any number of writers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rowtime.core.time import MINUTE, SECOND, to_micros
from rowtime.plan.program import compile_script
from rowtime.runtime.sinks.directory import moved_name
from rowtime.state.checkpoint import Checkpoint, folder_of
from rowtime.state.sealed import sealed

BEGAN = to_micros("2026-03-02 09:00:00")
TICK = 20 * SECOND  # event time that passes per tick
SCRIPT = """\
CREATE STREAM readings (device STRING, t TIMESTAMP, value DOUBLE);
CREATE STREAM doors (device STRING, open BOOLEAN);
CREATE STREAM found (m TIMESTAMP, device STRING, n BIGINT) USING parquet OPTIONS (path '{out}');

CREATE VIEW sorted AS
  SELECT STREAM t AS ROWTIME, device, value FROM readings
  ORDER BY t WITHIN INTERVAL '1' MINUTE;

CREATE VIEW seen AS
  SELECT STREAM device FROM sorted UNION ALL SELECT STREAM device FROM doors;

CREATE PUMP per_minute AS INSERT INTO found
  SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS m, device, COUNT(*) AS n
  FROM seen AS s GROUP BY FLOOR(s.ROWTIME TO MINUTE), device;
"""
GATES = ("readings", "doors", "sorted", "per_minute")


@dataclass(frozen=True)
class Made:
    """A checkpoint below ``folder``. ``hostile``: the name of writers and devices."""

    folder: Path
    ticks: int = 60
    writers: int = 3
    stuck: int | None = 40
    """From this tick on the last writer of doors is silent, and everything waits for it."""
    began: int = BEGAN
    hostile: str = ""
    costs: bool = True

    @property
    def out(self) -> Path:
        return self.folder.parents[1] / "out" / self.folder.name

    def make(self) -> Path:
        """Write the whole checkpoint, as a driver that has stopped leaves it."""
        place = Checkpoint(self.folder)
        place.acquire()
        program = compile_script(SCRIPT.format(out=self.out))
        assert not program.problems, program.problems
        place.bind(program.described())
        (self.folder / "journal").mkdir()
        for tick in range(self.ticks):
            self.put(tick)
        self.write_rows()
        self.write_output(place.identity)
        place.published = self.ticks - 1
        place.release()
        return self.folder

    def put(self, tick: int) -> None:
        """The entry of a tick; the times are as short as files can be written."""
        (self.folder / "journal" / f"{tick:012d}.json").write_bytes(sealed({**self.entry(tick), "tick": tick}))

    def name(self, stream: str, number: int) -> str:
        return f"{self.hostile}{stream}-{number:05d}"

    def entry(self, tick: int) -> dict[str, Any]:
        at = self.began + (tick + 1) * TICK
        reached = at if self.stuck is None or tick < self.stuck else self.began + (self.stuck + 1) * TICK
        readings = {self.name("sensor", n): at - n % 7 * SECOND for n in range(self.writers)}
        doors = {self.name("door", n): at for n in range(2)} | {self.name("door", 2): reached}
        ordered, merged = at - 70 * SECOND, min(at - 70 * SECOND, reached)
        closed = merged // MINUTE * MINUTE
        rows = 100 * (tick + 1)
        late = 2 * (tick // 5)
        minutes = range(closed, max(ordered, closed) + MINUTE, MINUTE)  # the minutes whose groups are open
        clocks = {
            "readings": readings,
            "doors": doors,
            "sorted.select": readings,
            "sorted": {"": ordered},
            "seen.1.select": {"": ordered},
            "seen.2.select": doors,
            "seen.union": {"0000/": ordered, **{f"0001/{who}": clock for who, clock in doors.items()}},
        }
        return {
            "at": to_micros("2026-03-02 09:00:00") + tick * SECOND,
            "began": self.began,
            "control": {
                "per_minute.sink": {"sequence": max(0, (closed - self.began) // MINUTE) * 3, "bound": closed},
            },
            "segments": {
                "sorted/state": [["state/sorted/1.parquet", 350, ordered, at, 0, 3_500]],
                "per_minute.group/state": [
                    [f"state/per_minute.group/{n}.parquet", 3, minute, minute + MINUTE, 0, 1_200]
                    for n, minute in enumerate(minutes)
                ],
            },
            "outputs": {},
            "refused": {},
            "sources": {
                "readings": {"offsets": dict.fromkeys(readings, 30 * tick), "state": {}, "away": {}, "first": {}},
                "doors": {"offsets": dict.fromkeys(doors, tick), "state": {}, "away": {}, "first": {}},
            },
            "totals": {
                "readings": {"in": rows, "accepted": rows},
                "doors": {"in": 3 * (tick + 1), "accepted": 3 * (tick + 1)},
                "sorted": {"in": rows, "accepted": rows - late, "LATE": late}
                if late
                else {"in": rows, "accepted": rows},
                "per_minute": {"in": tick, "accepted": tick},
            },
            "clocks": {**{name: {"": closed} for name in self.names}, **clocks},
            "held": {"sorted/state": 350, "per_minute.group/state": 3 * len(minutes)},
            "since": {},
            **({"cost": _cost(tick, self.began)} if self.costs else {}),
        }

    @property
    def names(self) -> Sequence[str]:
        if self.folder not in _NAMES:
            _NAMES[self.folder] = [*compile_script(SCRIPT.format(out=self.out)).described().operators]
        return _NAMES[self.folder]

    def write_rows(self) -> None:
        """Rows that the gate of the T-sort has refused, and those of the output."""
        place = self.folder / "rejected" / folder_of("sorted")
        place.mkdir(parents=True)
        for tick in range(5, min(self.ticks, 400), 5):
            pq.write_table(self.refused(tick), place / f"{tick:012d}-abcdef-00000-rejected-0000.parquet")

    def write_output(self, identity: str) -> None:
        """The files of the output: three rows per complete minute."""
        self.out.mkdir(parents=True)
        for tick in range(min(self.ticks, 400)):
            table = self.written(tick)
            if table.num_rows:
                name = moved_name(Path(f"{tick:010d}-00000-part-abcdef01.parquet"), identity, "per_minute")
                pq.write_table(table, self.out / name)

    def written(self, tick: int) -> pa.Table:
        before, after = (
            (self.entry(n)["control"]["per_minute.sink"]["bound"] if n >= 0 else self.began) for n in (tick - 1, tick)
        )
        minutes = [at for at in range(max(before, self.began), after, MINUTE) for _ in range(3)]
        time = pa.timestamp("us", "UTC")
        return pa.table({
            "rowtime": pa.array([at + MINUTE for at in minutes], time),
            "m": pa.array(minutes, time),
            "device": [self.name("sensor", n % 3) for n in range(len(minutes))],
            "n": pa.array([100 + n for n in range(len(minutes))], pa.int64()),
        })  # fmt: skip

    def refused(self, tick: int) -> pa.Table:
        at = self.began + (tick + 1) * TICK
        time = pa.timestamp("us", "UTC")
        return pa.table({
            "t": pa.array([at - 300 * SECOND, at - 240 * SECOND], time),
            "device": [self.name("sensor", 0), self.name("sensor", 1)],
            "value": [1.5, 2.5],
            "reason": ["LATE", "LATE"],
            "refused_time": pa.array([at - 300 * SECOND, at - 240 * SECOND], time),
            "refused_by": pa.array([at - 60 * SECOND] * 2, time),
            "writer": [self.name("sensor", 0), self.name("sensor", 1)],
            "position": [10 * tick, 10 * tick + 1],
        })  # fmt: skip


_NAMES: dict[Path, Sequence[str]] = {}


def _cost(tick: int, began: int) -> dict[str, Any]:
    spent = {
        "input": 2.0,
        "plan": 80.0 + tick % 13,
        "clock": 11.5,
        "driver": 7.0,
        "jobs": 150.0 + 40 * (tick % 17 == 0),
        "sinks": 21.0,
    }
    before = {"ended": began + tick * SECOND, "ms": {"sinks": 4.0, "journal": 9.0}}
    return {
        "began": began + tick * SECOND,
        "ended": began + tick * SECOND + 260_000,
        "ms": spent,
        "in": {"readings": 100, "doors": 3},
        "out": {"per_minute.sink": 1},
        "refused": 2 * (tick % 5 == 0),
        "files": 3,
        "bytes": 8_000 + tick,
        "jobs": 2,
        "left": {"readings": [1_200, "rows"], "doors": [0, "rows"]},
        "before": before,
    }


def as_newer(folder: Path) -> None:
    """Give the last entry of a checkpoint the format of a future version."""
    path = max((folder / "journal").glob("*.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
