"""A million rows with one rowtime, and a million with one key: the answer is right, and takes no longer."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

ROWS = 1_000_000
KEYS = 1000
START = 1_704_103_200_000_000  # 2024-01-01 10:00 UTC, µs
MILLISECOND = 1000
SLOWER = 3.0  # times as long as with distributed times and keys; anything above is disproportionate
JITTER = 3.0  # seconds: runs are short, and other programs run on the machine
STREAMS = "CREATE STREAM s (k BIGINT, v BIGINT, t TIMESTAMP); CREATE STREAM r (k BIGINT, v BIGINT);"
Answer = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def of_table(table: pa.Table) -> np.ndarray:
    """The columns without the rowtime, as integers."""
    return np.column_stack([table[name].to_numpy() for name in table.column_names if name != "rowtime"])


def run(spark: SparkSession, folder: Path, sql: str, times: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, float]:
    """The rows of a query in one tick, over rows whose values are their numbers, and the seconds of the run."""
    parts: list[np.ndarray] = []
    made = rt.Pipeline(spark, home=folder / "home").sql(STREAMS + sql)
    made.sink("result", lambda batch: parts.append(of_table(batch.table())) if batch.count else None)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json())
    instants = pa.array(times, pa.timestamp("us", "UTC"))
    rows = pa.table({"k": keys, "v": np.arange(len(keys)), "t": instants, "rowtime": instants})
    right = rows.drop_columns(["t"]).take(np.arange(0, len(keys), len(keys) // KEYS))
    for name, table in {"s": rows, "r": right}.items():
        with rt.writer(name, home=folder / "home") as writer:
            writer.insert(table)
            writer.end()
    began = time.perf_counter()
    query = made.run_available(folder / "check", end=True)
    seconds = time.perf_counter() - began
    assert all(counts["in"] == counts["accepted"] for counts in query.ledger.values())
    return np.concatenate(parts), seconds


# -- expected results, over rows in the order of their numbers --------------------------


def sorted_rows(_times: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return np.column_stack([keys, numbers])


def groups(times: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """By minute and key: the number of rows, and the sum of their numbers."""
    minutes = times // 60_000_000
    found, where = np.unique(np.column_stack([minutes, keys]), axis=0, return_inverse=True)
    counts, sums = np.zeros(len(found), int), np.zeros(len(found), int)
    np.add.at(counts, where.ravel(), 1)
    np.add.at(sums, where.ravel(), numbers)
    return np.column_stack([found[:, 1], counts, sums])


def frames(times: np.ndarray, keys: np.ndarray, numbers: np.ndarray, first: Callable[..., np.ndarray]) -> np.ndarray:
    """Each row with the count and the sum of its frame; ``first``: the position in its key where the frame begins."""
    found = np.zeros((len(keys), 4), int)
    for key in np.unique(keys):
        own = np.flatnonzero(keys == key)
        before = np.concatenate([[0], np.cumsum(numbers[own])])
        places = np.arange(len(own))
        begins = first(times[own], places)
        found[own] = np.column_stack(
            [np.full(len(own), key), numbers[own], places + 1 - begins, before[places + 1] - before[begins]]
        )
    return found


def ranges(times: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return frames(times, keys, numbers, lambda own, _places: np.searchsorted(own, own - 60_000_000))


def ten_rows(times: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    return frames(times, keys, numbers, lambda _own, places: np.maximum(0, places - 9))


def sessions(times: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """No two rows of a key are further apart than the gap, so a key has one session."""
    found, counts = np.unique(keys, return_counts=True)
    sums = np.zeros(len(found), int)
    np.add.at(sums, np.searchsorted(found, keys), numbers)
    return np.column_stack([found, counts, sums])


def pairs(times: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Each row of the right side, every thousandth, is joined with itself and the rows within a millisecond."""
    step = len(keys) // KEYS
    found = [
        (keys[n], m, n)
        for n in range(0, len(keys), step)
        for m in range(max(0, n - 1), min(len(keys), n + 2))
        if keys[m] == keys[n] and abs(times[m] - times[n]) <= MILLISECOND
    ]
    return np.array(sorted(found, key=lambda pair: (max(times[pair[1]], times[pair[2]]), pair[1], pair[2])))


def equal_keys(_times: np.ndarray, keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    chosen = numbers[:: len(keys) // KEYS]
    return np.column_stack([keys[chosen], chosen, chosen])


TSORT = "SELECT STREAM t AS ROWTIME, k, v FROM s ORDER BY t WITHIN INTERVAL '1' SECOND"
GROUPS = "SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE), k"
OVER = """SELECT STREAM k, v, COUNT(*) OVER w AS c, SUM(v) OVER w AS total FROM s
  WINDOW w AS (PARTITION BY k ORDER BY s.ROWTIME {})"""
RANGE, ROWS_10 = OVER.format("RANGE INTERVAL '1' MINUTE PRECEDING"), OVER.format("ROWS 9 PRECEDING")
SESSION = "SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM s GROUP BY SESSION(s.ROWTIME, INTERVAL '1' MINUTE), k"
JOIN = """SELECT STREAM a.k, a.v, b.v AS other FROM s OVER (RANGE INTERVAL '0.001' SECOND PRECEDING) AS a
  JOIN r OVER (RANGE INTERVAL '0.001' SECOND PRECEDING) AS b ON a.k = b.k"""


def compare(
    spark: SparkSession,
    folder: Path,
    sql: str,
    answer: Answer,
    odd: tuple[np.ndarray, np.ndarray],
    even: tuple[np.ndarray, np.ndarray],
) -> None:
    """The answer over uneven input, and the seconds compared with those over even input; the first run is a warm-up."""
    run(spark, folder / "warm", sql, *even)
    got, seconds = run(spark, folder / "odd", sql, *odd)
    wanted = answer(*odd, np.arange(ROWS))
    assert got.shape == wanted.shape
    assert (got == wanted).all(), (got[:5], wanted[:5])
    _, usual = run(spark, folder / "even", sql, *even)
    print(f"{sql.split('FROM', maxsplit=1)[0]} …: {seconds:.1f} s, with spread times or keys {usual:.1f} s")
    assert seconds < SLOWER * usual + JITTER


ONE_TIME = np.full(ROWS, START)
SPREAD = START + MILLISECOND * np.arange(ROWS)
CYCLE = np.arange(ROWS) % KEYS
ONE_KEY = np.zeros(ROWS, int)


@pytest.mark.parametrize(
    ("sql", "answer", "keys"),
    [
        (TSORT, sorted_rows, CYCLE),
        (GROUPS, groups, CYCLE),
        (RANGE, ranges, CYCLE),
        (ROWS_10, ten_rows, CYCLE),
        (JOIN, equal_keys, np.arange(ROWS)),
    ],
    ids=["T-sort", "groups", "range", "rows", "join"],
)
def test_a_million_rows_with_one_rowtime(
    spark: SparkSession, tmp_path: Path, sql: str, answer: Answer, keys: np.ndarray
) -> None:
    compare(spark, tmp_path, sql, answer, (ONE_TIME, keys), (SPREAD, keys))


@pytest.mark.parametrize(
    ("sql", "answer"),
    [(GROUPS, groups), (RANGE, ranges), (ROWS_10, ten_rows), (SESSION, sessions), (JOIN, pairs)],
    ids=["groups", "range", "rows", "sessions", "join"],
)
def test_a_million_rows_with_one_key(spark: SparkSession, tmp_path: Path, sql: str, answer: Answer) -> None:
    compare(spark, tmp_path, sql, answer, (SPREAD, ONE_KEY), (SPREAD, CYCLE))
