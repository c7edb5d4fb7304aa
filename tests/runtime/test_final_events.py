"""Events that are final when they are made: snapshots and joins write the files of a directory themselves.

The result equals that of a loop over the accepted events, whether the driver computes it from Parquet, from rows that
Spark collects, or Spark does; and whether the sink moves the files or sorts rows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.columns import DUE
from rowtime.operators.events.emit_tables import together
from rowtime.operators.events.lifetime_join import LifetimePairs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

UTC = pa.timestamp("us", "UTC")
START = 1_704_103_200_000_000  # 2024-01-01 10:00 UTC, µs
Event = tuple[int, int, str, int]  # start, end (µs after START), key, value
Answer = list[tuple[object, ...]]
STREAMS = "".join(
    f"CREATE STREAM {name} (k STRING, v INT, a TIMESTAMP, b TIMESTAMP) "
    "EVENT SHAPE INTERVAL (a, b) ON LATE {policy} BOUND EVERY 7 ROWS DELAY INTERVAL '5' SECOND "
    "USING parquet OPTIONS (path '{folder}/" + name + "');\n"
    for name in "st"
)
SINK = "CREATE STREAM o ({columns}, f TIMESTAMP, u TIMESTAMP) USING parquet OPTIONS (path '{folder}/out'{more});\n"
EMIT = (
    "CREATE VIEW e AS {query} EMIT INTERVALS (f, u);\n"
    "CREATE PUMP p AS INSERT INTO o ({names}, f, u) SELECT STREAM {names}, f, u FROM e;"
)


def joined(s: Sequence[Event], t: Sequence[Event], keep: Callable[[Event, Event], bool]) -> Answer:
    return [
        (a[2], a[3], b[3], max(a[0], b[0]), min(a[1], b[1]))
        for a in s
        for b in t
        if a[0] < b[1] and b[0] < a[1] and keep(a, b)
    ]


def counted(s: Sequence[Event], most: int) -> Answer:
    found: Answer = []
    for key in {event[2] for event in s}:
        mine = [event for event in s if event[2] == key]
        times = sorted({at for event in mine for at in event[:2]})
        for start, end in zip(times, times[1:], strict=False):
            alive = [event for event in mine if event[0] <= start < event[1]]
            if len(alive) >= most:
                found.append((key, len(alive), 100 // len(alive), sum(event[3] for event in alive), start, end))
    return found


PAIRS = "SELECT STREAM s.k AS k, s.v AS v, t.v AS w FROM s JOIN t ON "
COUNTS = "SELECT STREAM k, COUNT(*) AS n, 100 DIV COUNT(*) AS part, SUM(v) AS total FROM s GROUP BY SNAPSHOT(), k"
QUERIES: dict[str, tuple[str, str, Callable[[Sequence[Event], Sequence[Event]], Answer]]] = {
    "join": (PAIRS + "s.k = t.k", "k STRING, v INT, w INT", lambda s, t: joined(s, t, lambda a, b: a[2] == b[2])),
    "two keys": (
        PAIRS + "s.k = t.k AND t.v = s.v",
        "k STRING, v INT, w INT",
        lambda s, t: joined(s, t, lambda a, b: a[2:] == b[2:]),
    ),
    "more than equal": (
        PAIRS + "s.k = t.k AND s.v < t.v",
        "k STRING, v INT, w INT",
        lambda s, t: joined(s, t, lambda a, b: a[2] == b[2] and a[3] < b[3]),
    ),
    "no key": (
        "SELECT STREAM s.k AS k, s.v AS v, t.v AS w FROM s JOIN t ON s.v + t.v = 4",
        "k STRING, v INT, w INT",
        lambda s, t: joined(s, t, lambda a, b: a[3] + b[3] == 4),
    ),
    "snapshots": (COUNTS, "k STRING, n BIGINT, part BIGINT, total BIGINT", lambda s, _: counted(s, 1)),
    "having": (
        COUNTS + " HAVING COUNT(*) > 1",
        "k STRING, n BIGINT, part BIGINT, total BIGINT",
        lambda s, _: counted(s, 2),
    ),
}


def events(chance: random.Random) -> list[list[Event]]:
    """Some files of events; a few begin too late."""
    files, at = [], 0
    for _ in range(4):
        rows = []
        for _ in range(chance.randint(0, 25)):
            at += chance.randint(0, 2)
            start = max(0, at - chance.choice((0, 0, 1, 3, 9, 30)))
            rows.append(
                (
                    start * 10**6,
                    (start + chance.choice((1, 2, 5, 20))) * 10**6,
                    chance.choice("vwxyz"),
                    chance.randint(0, 4),
                )
            )
        files.append(rows)
    return files


def accepted(files: Sequence[Sequence[Event]], *, adjusts: bool) -> list[Event]:
    """Semantics 9.2, row by row: every seventh row sets the bound five seconds behind the greatest start."""
    bound, highest, found = -(10**15), -(10**15), []
    for number, (start, end, key, value) in enumerate((row for file in files for row in file), 1):
        if start >= bound:
            found.append((start, end, key, value))
        elif adjusts and end > bound:
            found.append((bound, end, key, value))
        highest = max(highest, start)
        if number % 7 == 0:
            bound = max(bound, highest - 5 * 10**6)
    return found


def write(folder: Path, files: Sequence[Sequence[Event]]) -> None:
    folder.mkdir(parents=True)
    for number, rows in enumerate(files):
        columns = {
            "k": pa.array([row[2] for row in rows], pa.string()),
            "v": pa.array([row[3] for row in rows], pa.int32()),
            **{
                name: pa.array([START + at for at in times], UTC)
                for name, times in zip("ab", ([r[0] for r in rows], [r[1] for r in rows]), strict=True)
            },
        }
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")


def answered(folder: Path) -> Answer:
    rows = [row for path in sorted((folder / "out").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    return sorted(
        (*(row[name] for name in row if name not in ("rowtime", "f", "u")), *(micros(row[name]) for name in "fu"))
        for row in rows
    )


def micros(at: object) -> int:
    found: int = pa.scalar(at, UTC).cast(pa.int64()).as_py() - START
    return found


ALWAYS = [("snapshots", None, False, "driver"), ("join", None, True, "driver")]
"""What the default tests try."""


@pytest.mark.parametrize(
    ("query", "files", "ordered", "ways"),
    [
        pytest.param(*given, marks=[] if given in ALWAYS else [pytest.mark.slow])
        for given in product(QUERIES, (1, None), (False, True), ("driver", "spark"))
    ],
)
def test_final_events_equal_those_of_a_loop(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    files: int | None,
    ordered: bool,
    ways: str,
) -> None:
    sql, columns, oracle = QUERIES[query]
    chance = random.Random(f"{query} {files} {ordered} {ways}")
    adjusts = chance.random() < 0.5
    given = {name: events(chance) for name in "st"}
    for name, of in given.items():
        write(tmp_path / name, of)
    if ways == "spark":
        monkeypatch.setattr(LifetimePairs, "typed", False)  # pairs by joins
    names = ", ".join(column.split()[0] for column in columns.split(", "))
    more = f", ordered '{str(ordered).lower()}'"
    text = STREAMS.format(policy="ADJUST" if adjusts else "DROP", folder=tmp_path)
    text += SINK.format(columns=columns, folder=tmp_path, more=more) + EMIT.format(query=sql, names=names)
    rt.Pipeline(spark, home=tmp_path / "home").sql(text).run_available(
        tmp_path / "check", end=True, limits=rt.Limits(files=files)
    )
    wanted = oracle(*(accepted(of, adjusts=adjusts) for of in given.values()))
    assert answered(tmp_path) == sorted(wanted)


def test_kept_events_are_due_once() -> None:
    kept = pa.table({"v": [1, 2, 3, 4], DUE: [4, 5, 9, 10]})
    new = pa.table({"v": [5], DUE: [20]})
    found = together(new, [kept], (4, 9))
    assert found is not None
    assert found["v"].to_pylist() == [5, 2, 3]
    assert together(None, [], (4, 9)) is None
