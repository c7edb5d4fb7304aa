"""Nexmark beside PyFlink: both read the events from CSV files, and their results are discarded.

Flink runs the published queries, with our columns (``benchmarks/flink_sql``), and its watermark is four seconds behind,
as published. It opens files in any order and drops the rows that are then late. So it gets the same rows in two files
per stream, every other row in each, and its two tasks read both at once. The published q13 looks up a table by
processing time through a connector that Flink no longer has; here it joins that table. q14 counts characters by REPLACE
in place of a function in Java. rowtime has no q10 and q12, and Flink cannot run q6.
"""

from __future__ import annotations

import shutil
from collections import Counter
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from benchmarks import flink
from benchmarks.data import CACHE
from benchmarks.measurement import Measurement, Result, against, middle
from benchmarks.nexmark import FILES, LONG, SHORT, TICK, WARM, events, run_rowtime
from examples.nexmark.queries import STREAMS, streamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.engines import Engines

TEXTS = Path(__file__).parent / "flink_sql"
QUERIES = ("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8", "q9", "q11",
           "q13", "q14", "q15", "q16", "q17", "q18", "q19", "q20")  # fmt: skip
QUICK = ("q0", "q4", "q5", "q8", "q18", "q20")
EACH, MEAN = 1.0, 1.5  # times Flink's speed
COLUMNS = {
    "person": "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
    "`dateTime` TIMESTAMP(3), extra STRING",
    "auction": "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, "
    "`dateTime` TIMESTAMP(3), expires TIMESTAMP(6), seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, "
    "`dateTime` TIMESTAMP(3), extra STRING",
    "side_input": "`key` BIGINT, `value` STRING",
}
KEYS = {"q4": [0], "q9": [0], "q15": [0], "q16": [0, 1], "q17": [0, 1], "q18": [0, 1], "q19": [0, 4]}
"""The columns by whose values Flink replaces rows that it has sent, for queries with such results."""

WATERMARK = "`dateTime` - INTERVAL '4' SECOND"


def measure(engines: Engines, *, short: bool) -> Result:
    """Compare the rows of each query over few events, then run both in turns over many."""
    if not flink.is_there():
        return {"skipped": flink.MISSING, "ratios": []}
    count, rounds = (SHORT, 1) if short else (LONG, 3)
    lines, answers = {}, {}
    with flink.Session() as session:
        for name, size in (("few", WARM), ("many", count)):
            _declare(session, name, size)
        for query in QUICK if short else QUERIES:
            answers[query] = _compared(engines, session, query)
            lines[query] = _in_turns(engines, session, query, count, rounds)
    ratios = {query: line["ratio"] for query, line in lines.items()}
    each = [against(f"PyFlink, {query}", ratio, EACH) for query, ratio in ratios.items()]
    mean = against("PyFlink, geometric mean", geometric_mean(ratios.values()), MEAN)
    return {"events": count, "rounds": rounds, "queries": lines, "answers": answers, "ratios": [*each, mean]}


def csv_events(count: int) -> Path:
    """Return the events as CSV, one file per file of Parquet."""
    return _made(f"nexmark-csv-{count}x{FILES}", count, _same_files)


def _for_flink(count: int) -> Path:
    """Return the same rows in two files per stream."""
    return _made(f"nexmark-flink-{count}", count, _two_files)


def _made(name: str, count: int, files: Callable[[list[pa.Table]], Iterator[pa.Table]]) -> Path:
    source, folder = events(count), CACHE / name
    done = folder.with_suffix(".done")
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        for stream in (*STREAMS, "side_input"):
            (folder / stream).mkdir(parents=True)
            tables = [_as_text(pq.read_table(path)) for path in sorted((source / stream).iterdir())]
            for number, rows in enumerate(tables if stream == "side_input" else files(tables)):
                plain = pa_csv.WriteOptions(include_header=False, quoting_style="none")
                pa_csv.write_csv(rows, folder / stream / f"{number:06d}.csv", plain)
        done.touch()
    return folder


def _same_files(tables: list[pa.Table]) -> Iterator[pa.Table]:
    yield from tables


def _two_files(tables: list[pa.Table]) -> Iterator[pa.Table]:
    rows = pa.concat_tables(tables)
    for first in range(2):
        yield rows.take(pa.array(range(first, rows.num_rows, 2)))


def _as_text(rows: pa.Table) -> pa.Table:
    """Return times in the form of SQL, and no empty text, which one of the two would read as NULL."""
    for number, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            kind = pa.timestamp("us" if field.name == "expires" else "ms")
            text = pc.strftime(rows[field.name].cast(kind, safe=False), format="%Y-%m-%d %H:%M:%S")
            rows = rows.set_column(number, field.name, text)
        elif pa.types.is_string(field.type):
            column = rows[field.name]
            rows = rows.set_column(number, field.name, pc.if_else(pc.equal(column, ""), "none", column))
    return rows


def _declare(session: flink.Session, name: str, count: int) -> None:
    session.run(f"CREATE DATABASE {name}")
    session.run(f"USE {name}")
    for table, columns in COLUMNS.items():
        session.table(table, columns, str(_for_flink(count) / table), WATERMARK if table in STREAMS else "")


def _in_turns(engines: Engines, session: flink.Session, query: str, count: int, rounds: int) -> Result:
    """Return medians; the first run of each, which is not counted, is over few events in the short form."""
    spent: dict[str, list[float]] = {"rowtime": [], "pyflink": []}
    for number in range(rounds + 1):
        many = number or count == LONG
        session.run("USE many" if many else "USE few")
        ours = run_rowtime(engines, query, csv_events(count if many else WARM), "csv")
        theirs, _ = session.drained(_text(query))
        if number:
            spent["rowtime"].append(1000 * ours)
            spent["pyflink"].append(1000 * theirs)
    medians = {name: middle(times) for name, times in spent.items()}
    speeds = {name: int(count / median * 1000) for name, median in medians.items()}
    ratio = medians["pyflink"] / medians["rowtime"]
    return {"median_ms": medians, "events_a_second": speeds, "ratio": round(ratio, 3)}


def _text(query: str) -> str:
    return (TEXTS / f"{query}.sql").read_text(encoding="utf-8")


def _compared(engines: Engines, session: flink.Session, query: str) -> str:
    """Return ``equal`` if both have the same rows over few events, or what differs."""
    session.run("USE few")
    theirs = Counter(tuple(map(str, row)) for row in session.rows(_text(query), KEYS.get(query, ())))
    table = streamed(query, csv_events(WARM), engines.fresh("nexmark"), engines.spark, TICK, "csv")
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    ours = Counter(tuple(map(_plain, row)) for row in SHAPED.get(query, iter)(rows))
    if ours == theirs:
        return "equal"
    return f"{ours.total()} rows against {theirs.total()}: {list(ours - theirs)[:1]} against {list(theirs - ours)[:1]}"


def _plain(value: Any) -> str:
    """Return a value as Flink writes it: without zeros at the end of a fraction."""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    if isinstance(value, datetime):
        seconds, _, part = value.replace(tzinfo=None).isoformat(" ").partition(".")
        return f"{seconds}.{part.rstrip('0')}" if part else seconds
    return str(value)


def _last_averages(rows: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the last average of each category, as Flink has it; rowtime emits each. Of whole numbers it is whole."""
    yield from ((category, int(average)) for category, average in {row[1]: row[2] for row in rows}.items())


def _whole_averages(rows: list[Any]) -> Iterator[tuple[Any, ...]]:
    yield from ((*row[:-2], int(row[-2]), row[-1]) for row in rows)


def _one_by_one(rows: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield one row per place, as Flink has them; rowtime has the ten in one array."""
    for auction, highest in rows:
        for place, bid in enumerate(highest, 1):
            yield auction, bid["price"], bid["bidder"], bid["dateTime"], place


SHAPED: dict[str, Callable[[list[Any]], Iterator[tuple[Any, ...]]]] = {
    "q4": _last_averages,
    "q17": _whole_averages,
    "q19": _one_by_one,
}
NEXMARK_FLINK = Measurement(
    "nexmark_flink", "Nexmark from CSV, against PyFlink's SQL; the results go nowhere", measure
)  # fmt: skip
