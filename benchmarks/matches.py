"""MATCH_RECOGNIZE against PyFlink, from one CSV file: a fall below a limit, what follows it, and a rise above another.

A row comes every millisecond; with 10,000 keys a key has one every ten seconds.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks import flink
from benchmarks.measurement import Measurement, Result, against
from benchmarks.works import Ordered, Work, beside_flink

if TYPE_CHECKING:
    from benchmarks.engines import Engines

QUERY = """SELECT {stream}m.t, m.k, m.n, m.s, m.a FROM {table} MATCH_RECOGNIZE (
PARTITION BY k ORDER BY {time}
MEASURES C.{time} AS t, COUNT(*) AS n, SUM(B.v) AS s, LAST(A.v) AS a
ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
PATTERN (A B+ C) WITHIN INTERVAL {within}
DEFINE A AS A.v < 200, B AS B.v >= 200 AND B.v < 800{more}, C AS C.v >= 800) AS m"""
OF_ROWS, OF_MATCHES = "", " AND B.v > LAST(A.v) + 100"
"""Conditions of rows alone, and one that reads the match."""


def work(rows: Ordered, more: str, within: str) -> Work:
    """The matches in ``rows``."""
    return Work(
        {"r": rows},
        rowtime=QUERY.format(stream="STREAM ", time="ROWTIME", table="r", more=more, within=within),
        spark="",
        flink=QUERY.format(stream="", time="ev", table="{r}", more=more, within=within),
        result=("k", "n", "s", "a"),
    )


def measure(engines: Engines, *, short: bool, keys: int, more: str, within: str) -> Result:
    """Both from one file; all rows must be equal."""
    if not flink.is_there():
        return {"skipped": flink.MISSING, "ratios": []}
    few = work(Ordered(10_000, 1, 100_000, "csv"), more, within)
    many = work(Ordered(keys, 1, 200_000 if short else 1_000_000, "csv"), more, within)
    found = beside_flink(engines, many, few, 1 if short else 3)
    ratio = found["median_ms"]["pyflink"] / found["median_ms"]["rowtime"]
    return {"keys": keys, **found, "ratios": [against("PyFlink", ratio, 1.5)]}


MATCHES = tuple(
    Measurement(
        f"match_flink_{name}",
        f"MATCH_RECOGNIZE with {keys} keys, {says}, from CSV, against PyFlink",
        partial(measure, keys=keys, more=more, within=within),
    )
    for name, keys, says, more, within in (
        ("10k", 10_000, "conditions of rows", OF_ROWS, "'2' MINUTE"),
        ("10k_paths", 10_000, "a condition of the match", OF_MATCHES, "'2' MINUTE"),
        ("10", 10, "conditions of rows", OF_ROWS, "'1' SECOND"),
    )
)
