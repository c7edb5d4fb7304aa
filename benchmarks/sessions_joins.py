"""Sessions and an interval join: beside Spark's streaming engine and its batch, from Parquet, and PyFlink, from CSV.

The gap of a session is no multiple of the step from row to row: two rows exactly a gap apart are one session for Flink
and two for rowtime.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks import flink
from benchmarks.measurement import Measurement, Result
from benchmarks.works import Ordered, Work, batch, beside_flink, in_turns, native, rowtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.engines import Engines

KEYS, STEP = 10_000, 2000  # a key has a row every 20 s
FILES = {"parquet": (4, 250_000), "csv": (1, 1_000_000)}
QUICK = {"parquet": (2, 50_000), "csv": (1, 100_000)}
FEW = {"parquet": (2, 20_000), "csv": (1, 40_000)}


def sessions(rows: Ordered) -> Work:
    """Return the sessions of each key: rows and a sum, from the first row on."""
    gap = "INTERVAL '10.001' SECOND"
    windows = f"TABLE(SESSION(TABLE {{r}} PARTITION BY k, DESCRIPTOR(ev), {gap}))"
    return Work(
        {"r": rows},
        rowtime=f"SELECT STREAM SESSION_START(r.ROWTIME, {gap}) AS t, k, COUNT(*) AS c, SUM(v) AS s FROM r "
        f"GROUP BY k, SESSION(r.ROWTIME, {gap})",
        spark="SELECT session_window.start AS t, k, COUNT(*) AS c, SUM(v) AS s FROM r "
        "GROUP BY session_window(ev, '10001 milliseconds'), k",
        flink=f"SELECT window_start AS t, k, COUNT(*) AS c, SUM(v) AS s FROM {windows} "
        "GROUP BY k, window_start, window_end",
        result=("k", "c", "s"),
    )


def interval_join(rows: Ordered) -> Work:
    """Return a join of rows of one stream with those of another, of the same key, up to ten seconds later."""
    query = "SELECT {}{} AS t, l.k AS k, l.v AS v, r.v AS w FROM {} JOIN {} ON l.k = r.k AND {}"
    between = "r.{0} BETWEEN l.{0} AND l.{0} + INTERVAL '10' SECOND"
    later = Ordered(rows.keys, rows.files, rows.rows, rows.kind, rows.step, rows.shift + rows.step // 2)
    return Work(
        {"l": rows, "r": later},
        rowtime=query.format("STREAM ", "l.ROWTIME", "l", "r", between.format("ROWTIME")),
        spark=query.format("", "l.ev", "l", "r", between.format("ev")),
        flink=query.format("", "l.ev", "{l} AS l", "{r} AS r", between.format("ev")),
        result=("k", "v", "w"),
    )


WORKS = {"session": sessions, "interval_join": interval_join}


def _rows(name: str, kind: str, sizes: dict[str, tuple[int, int]]) -> Work:
    return WORKS[name](Ordered(KEYS, *sizes[kind], kind, STEP))


def measure(engines: Engines, *, short: bool, name: str) -> Result:
    """Measure in turns, from Parquet; all rows must be those of the batch."""
    many, few = (_rows(name, "parquet", sizes) for sizes in (QUICK if short else FILES, FEW))
    found = in_turns(engines, many, few, {"rowtime": rowtime, "native": native, "batch": batch}, 1 if short else 3)
    return {**found, "against": _against(found)}


def measure_flink(engines: Engines, *, short: bool, name: str) -> Result:
    """Measure from CSV, beside PyFlink."""
    if not flink.is_there():
        return {"skipped": flink.MISSING}
    many, few = (_rows(name, "csv", sizes) for sizes in (QUICK if short else FILES, FEW))
    found = beside_flink(engines, many, few, 1 if short else 3)
    return {**found, "against": _against(found)}


def _against(found: Result) -> dict[str, float]:
    medians = found["median_ms"]
    return {name: round(medians[name] / medians["rowtime"], 2) for name in medians if name != "rowtime"}


def _measurements(more: str, says: str, measured: Callable[..., Result]) -> tuple[Measurement, ...]:
    return tuple(
        Measurement(name + more, f"{what} of 10 s with {KEYS:,} keys, {says}", partial(measured, name=name))
        for name, what in {"session": "sessions", "interval_join": "an interval join"}.items()
    )


SESSIONS_JOINS = _measurements("", "from Parquet, beside Spark", measure)
SESSIONS_JOINS_FLINK = _measurements("_flink", "from CSV, beside PyFlink", measure_flink)
