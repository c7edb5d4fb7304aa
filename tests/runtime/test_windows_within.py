"""Windows of a time in no order, with WITHIN: a row is late for each window that has ended, however they are cut."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from rowtime.runtime.sinks.contract import Batch

START = 1_777_888_800  # 2026-05-04 10:00:00 UTC, in seconds
SLIDE, SIZE, WITHIN = 300, 600, 60
LENGTHS = f"INTERVAL '{SLIDE}' SECOND, INTERVAL '{SIZE}' SECOND"
TOLERANCE = f"WITHIN INTERVAL '{WITHIN}' SECOND"
Window = tuple[int, int]


def hops(t: int) -> Iterator[Window]:
    """The windows of HOP that contain a time, in the order of their ends."""
    end = t // SLIDE * SLIDE + SLIDE
    while end - SIZE <= t:
        yield end - SIZE, end
        end += SLIDE


def grown(t: int) -> Iterator[Window]:
    """The windows of CUMULATE."""
    start = t // SIZE * SIZE
    for end in range(t // SLIDE * SLIDE + SLIDE, start + SIZE + 1, SLIDE):
        yield start, end


def tumbled(t: int) -> Iterator[Window]:
    yield t // SIZE * SIZE, t // SIZE * SIZE + SIZE


def expected(times: list[int | None], windows: Any) -> tuple[list[tuple[int, int, int]], Counter[str]]:
    """The windows with their counts, in the order of their ends, and the refused rows by reason."""
    mark, counts, refused = -1, Counter[Window](), Counter[str]()
    for t in times:
        if t is None:
            refused["NULL_ROWTIME"] += 1
            continue
        for window in windows(t):
            if window[1] + WITHIN <= mark:
                refused["LATE"] += 1
            else:
                counts[window] += 1
        mark = max(mark, t)
    return sorted(((*window, n) for window, n in counts.items()), key=lambda row: (row[1], row[0])), refused


def got(spark: SparkSession, place: Path, query: str, files: int) -> tuple[list[tuple[int, int, int]], Counter[str]]:
    rows: list[tuple[int, int, int]] = []

    def take(batch: Batch) -> None:
        given = batch.table().to_pylist() if batch.count else []
        rows.extend((row["s"], row["e"], row["n"]) for row in given)

    sql = (
        "CREATE STREAM s (t TIMESTAMP, ms BIGINT, meta STRUCT<at TIMESTAMP>) "
        f"USING json OPTIONS (path '{place / 's'}'); {query}"
    )
    pipeline = rt.Pipeline(spark, home=place / f"home{files}").sql(sql).sink("result", take)
    run = pipeline.run_available(place / f"checked{files}", end=True, limits=rt.Limits(files=files))
    refused: Counter[str] = Counter()
    for gate in run.ledger.values():
        refused.update({reason: n for reason, n in gate.items() if reason not in ("in", "accepted")})
    return rows, refused


def written(place: Path, times: list[int | None]) -> None:
    """Write five rows a file."""
    (place / "s").mkdir(parents=True)
    for number in range(0, len(times), 5):
        rows = [
            {} if t is None else {"t": _text(t), "ms": t * 1000, "meta": {"at": _text(t)}}
            for t in times[number : number + 5]
        ]
        (place / "s" / f"{number:04}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _text(t: int) -> str:
    return datetime.fromtimestamp(t, UTC).isoformat().replace("+00:00", "Z")


CALL = "SELECT STREAM unix_seconds(HOP_START({0}, {1})) AS s, unix_seconds(HOP_END({0}, {1})) AS e, COUNT(*) AS n FROM s GROUP BY HOP({0}, {1}) {2}"  # noqa: E501
TABLE = "SELECT STREAM unix_seconds(window_start) AS s, unix_seconds(window_end) AS e, COUNT(*) AS n FROM TABLE({}(TABLE s, DESCRIPTOR(t), {})) GROUP BY {}"  # noqa: E501
ENDS = f"window_start, window_end {TOLERANCE}"
QUERIES = {
    "HOP": (CALL.format("t", LENGTHS, TOLERANCE), hops),
    "HOP of a number": (CALL.format("timestamp_millis(ms)", LENGTHS, TOLERANCE), hops),
    "HOP of a field": (CALL.format("meta.at", LENGTHS, TOLERANCE), hops),
    "HOP after FROM": (TABLE.format("HOP", LENGTHS, ENDS), hops),
    "HOP after FROM, by its start": (TABLE.format("HOP", LENGTHS, f"window_start {TOLERANCE}, window_end"), hops),
    "CUMULATE": (TABLE.format("CUMULATE", LENGTHS, ENDS), grown),
    "TUMBLE after FROM": (TABLE.format("TUMBLE", f"INTERVAL '{SIZE}' SECOND", ENDS), tumbled),
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_row_counts_in_the_windows_that_are_open(spark: SparkSession, tmp_path: Path, name: str) -> None:
    query, windows = QUERIES[name]
    chance = random.Random(name)
    late = [0, 0, 0, 30, 61, 200, 350, 700]
    times = [None if n % 13 == 12 else START + n * 40 - chance.choice(late) for n in range(60)]
    wanted, refused = expected(times, windows)
    assert refused["LATE"] > 1
    written(tmp_path, times)
    for files in (5, 50) if name in ("HOP", "CUMULATE") else (5,):
        assert got(spark, tmp_path, query, files) == (wanted, refused)
