"""Flink's own answers: PyFlink computes a query over the same rows, with random sizes; rowtime has to give its rows.

PyFlink is in an environment of its own (``make flink``). Both read rows in the order of time, and no two rows have the
same time. Flink's rows have no rowtime, so times are compared if both select them.
"""

from __future__ import annotations

import csv
import datetime as dt
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

import rowtime as rt
from benchmarks.flink import Session, is_there
from conformance.verdicts import DIFFERENT, REFUSED, RIGHT, WRONG, Suite, Verdict
from rowtime.core.errors import RowtimeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BEGIN: Final = dt.datetime(2024, 1, 1, 10)  # noqa: DTZ001 - all times are UTC
COLUMNS: Final = "k STRING, v INT, d DOUBLE, at TIMESTAMP(3)"
OURS: Final = "k STRING, v INT, d DOUBLE, at TIMESTAMP"
SOURCE: Final = "answers that PyFlink (apache-flink 2.3.0) gives over the same random rows"
VERSIONED: Final = """CREATE TEMPORARY VIEW versions AS SELECT k, v, `at` FROM (SELECT *, ROW_NUMBER() OVER
  (PARTITION BY k ORDER BY `at` DESC) AS rn FROM b) WHERE rn = 1"""


@dataclass(frozen=True)
class Query:
    """The same query in both systems. ``rule``: why the answers differ; ``refused``: the code, and ``because``."""

    name: str
    ours: str
    theirs: str = ""
    rule: str = ""
    refused: str = ""
    because: str = ""


def _window(kind: str, more: str, name: str = "a", partition: str = "") -> tuple[str, str]:
    ours = f"TABLE({kind}(TABLE {name}{partition}, DESCRIPTOR(ROWTIME), {more}))"
    return ours, ours.replace("DESCRIPTOR(ROWTIME)", "DESCRIPTOR(`at`)")


def _groups(name: str, values: str, window: tuple[str, str], rest: str = "") -> Query:
    text = f"window_start, window_end, k, {values} FROM {{}} AS t GROUP BY window_start, window_end, k{rest}"
    return Query(
        name, f"SELECT STREAM {text.format(window[0])}", f"SELECT {text.format(window[1]).replace(' AS t ', ' ')}"
    )


def _over(name: str, values: str, frame: str, partition: str = "PARTITION BY k ") -> Query:
    ours = f"SELECT STREAM k, v, {values} FROM a WINDOW w AS ({partition}ORDER BY ROWTIME {frame})"
    return Query(name, ours, ours.replace("STREAM ", "").replace("ROWTIME", "`at`"))


def _join(join: str, low: str, high: str) -> Query:
    side = "a.k, a.v" if "SEMI" in join or "ANTI" in join else "a.k, a.v, b.v AS w"
    between = f"b.ROWTIME BETWEEN a.ROWTIME - {low} AND a.ROWTIME + {high}"
    ours = f"SELECT STREAM {side} FROM a {join} b ON a.k = b.k AND {between}"
    return Query(f"interval join: {join}", ours, ours.replace("STREAM ", "").replace("ROWTIME", "`at`"))


def queries(chance: Random) -> list[Query]:
    """Return all queries, with random sizes."""
    size = chance.choice((60, 300, 900))
    slide, gap = size // chance.choice((2, 3)), chance.choice((20, 45, 120))
    interval = {n: f"INTERVAL '{n}' SECOND(3)" for n in (size, slide, gap, size // 3)}
    tumble = _window("TUMBLE", interval[size])
    hop = _window("HOP", f"{interval[slide]}, {interval[size]}")
    cumulate = _window("CUMULATE", f"{interval[size // 3]}, {interval[size]}")
    session = _window("SESSION", interval[gap], partition=" PARTITION BY k")
    least, few = chance.randint(-2, 3), chance.randint(1, 5)
    joins = (_join(join, interval[gap], interval[slide]) for join in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    return [
        Query("filter and projection", f"SELECT STREAM k, v * 2 AS w, UPPER(k) AS u FROM a WHERE v > {least}",
              f"SELECT k, v * 2 AS w, UPPER(k) AS u FROM a WHERE v > {least}"),
        Query("UNION ALL", f"SELECT STREAM k, v FROM a WHERE v > {least} UNION ALL SELECT STREAM k, v FROM b",
              f"SELECT k, v FROM a WHERE v > {least} UNION ALL SELECT k, v FROM b"),
        _groups("TUMBLE", "COUNT(*) AS n, SUM(v) AS s, MIN(d) AS lo, MAX(d) AS hi", tumble),
        _groups("TUMBLE: distinct, filter", "COUNT(DISTINCT v) AS n, SUM(v) FILTER (WHERE v > 0) AS s", tumble),
        _groups("TUMBLE: statistics", "AVG(d) AS m, STDDEV_POP(d) AS s, VAR_POP(d) AS p", tumble),
        _groups("TUMBLE: HAVING", "COUNT(*) AS n", tumble, f" HAVING COUNT(*) > {few % 3}"),
        _groups("HOP", "COUNT(*) AS n, SUM(v) AS s, MAX(d) AS hi", hop),
        _groups("CUMULATE", "COUNT(*) AS n, SUM(v) AS s, MIN(d) AS lo", cumulate),
        _groups("SESSION", "COUNT(*) AS n, SUM(v) AS s", session),
        _over("OVER ROWS", "COUNT(*) OVER w AS n, SUM(v) OVER w AS s, MAX(d) OVER w AS hi",
              f"ROWS BETWEEN {few} PRECEDING AND CURRENT ROW"),
        _over("OVER RANGE", "COUNT(*) OVER w AS n, SUM(v) OVER w AS s, MIN(d) OVER w AS lo",
              f"RANGE BETWEEN {interval[size]} PRECEDING AND CURRENT ROW"),
        _over("OVER, all rows before", "COUNT(*) OVER w AS n, SUM(v) OVER w AS s",
              "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"),
        _over("OVER without keys", "COUNT(*) OVER w AS n, SUM(v) OVER w AS s",
              f"RANGE BETWEEN {interval[gap]} PRECEDING AND CURRENT ROW", ""),
        _over("OVER: first and last", "FIRST_VALUE(v) OVER w AS f, LAST_VALUE(d) OVER w AS l",
              f"ROWS BETWEEN {few} PRECEDING AND CURRENT ROW"),
        *joins,
        _top(tumble, few, "v DESC, d, "),
        _first(tumble),
        _window_join(size, "JOIN"), _window_join(size, "LEFT JOIN"), _window_join(size, "FULL JOIN"),
        Query("groups of groups",
              f"SELECT STREAM STEP(x.ROWTIME BY {interval[size]}) AS s, COUNT(*) AS n, SUM(c) AS t FROM (SELECT STREAM"
              f" window_start, window_end, k, COUNT(*) AS c FROM {tumble[0]} AS t "
              f"GROUP BY window_start, window_end, k) AS x GROUP BY STEP(x.ROWTIME BY {interval[size]})",
              f"SELECT TIMESTAMPADD(SECOND, {size}, window_start) AS s, COUNT(*) AS n, SUM(c) AS t FROM (SELECT "
              f"window_start, window_end, k, COUNT(*) AS c FROM {tumble[1]} GROUP BY window_start, window_end, k) "
              "GROUP BY window_start, window_end"),
        Query("temporal join",
              "SELECT STREAM a.k, a.v, b.v AS w FROM a JOIN b FOR SYSTEM_TIME AS OF a.ROWTIME ON a.k = b.k",
              "SELECT a.k, a.v, b.v AS w FROM a JOIN versions FOR SYSTEM_TIME AS OF a.`at` AS b ON a.k = b.k"),
        Query("temporal left join",
              "SELECT STREAM a.k, a.v, b.v AS w FROM a LEFT JOIN b FOR SYSTEM_TIME AS OF a.ROWTIME ON a.k = b.k",
              "SELECT a.k, a.v, b.v AS w FROM a LEFT JOIN versions FOR SYSTEM_TIME AS OF a.`at` AS b ON a.k = b.k"),
        Query("AVG of whole numbers",
              f"SELECT STREAM window_start, AVG(v) AS m FROM {tumble[0]} AS t GROUP BY window_start, window_end",
              f"SELECT window_start, AVG(CAST(v AS DOUBLE)) AS m FROM {tumble[1]} GROUP BY window_start, window_end",
              rule="12: AVG of whole numbers is a fraction, as in Spark; Flink truncates it"),
        Query("groups without a window", "SELECT STREAM k, COUNT(*) AS n FROM a GROUP BY k", refused="R104",
              because="Flink keeps a count a key forever and sends each change; add a window, or use COUNT OVER"),
        Query("join without time", "SELECT STREAM a.k FROM a JOIN b ON a.k = b.k AND a.ROWTIME < b.ROWTIME",
              refused="R152", because="Flink keeps both sides forever; add a range of time"),
    ]  # fmt: skip


def _top(tumble: tuple[str, str], few: int, order: str) -> Query:
    number = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY {order}{at}) AS rn"
    ours = f"SELECT STREAM k, v, d, rn FROM (SELECT STREAM k, v, d, {number} FROM {tumble[0]}) AS x WHERE rn <= {few}"
    theirs = ours.replace("STREAM ", "").replace(*tumble)
    return Query("window top-N", ours.format(order=order.rstrip(", "), at=""), theirs.format(order=order, at="`at`"))


def _first(tumble: tuple[str, str]) -> Query:
    number = "ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY {}) AS rn"
    ours = f"SELECT STREAM k, v, d FROM (SELECT STREAM k, v, d, {number} FROM {tumble[0]}) AS x WHERE rn <= 1"
    theirs = ours.replace("STREAM ", "").replace(*tumble)
    return Query("window deduplication", ours.format("ROWTIME DESC"), theirs.format("`at` DESC"))


def _window_join(size: int, join: str) -> Query:
    parts = [_window("TUMBLE", f"INTERVAL '{size}' SECOND(3)", name) for name in ("a", "b")]
    counted = "SELECT {}window_start, window_end, k, COUNT(*) AS c FROM {}{} GROUP BY window_start, window_end, k"
    on = "x.k = y.k AND x.window_start = y.window_start AND x.window_end = y.window_end"
    text = "SELECT {}x.k AS xk, y.k AS yk, x.c AS xc, y.c AS yc FROM ({}) AS x {} ({}) AS y ON {}"
    ours = [counted.format("STREAM ", part[0], " AS t") for part in parts]
    theirs = [counted.format("", part[1], "") for part in parts]
    return Query(
        f"window join: {join}",
        text.format("STREAM ", ours[0], join, ours[1], on),
        text.format("", theirs[0], join, theirs[1], on),
    )


def suite(spark: SparkSession, seed: int, rounds: int) -> Suite:
    """Return the verdicts, over several rounds with other rows and sizes; a query has to be right in each."""
    name = "Flink: OVER, windows, joins, top-N"
    if not is_there():
        return Suite(name, SOURCE, missing="there is no PyFlink; make flink")
    chances = [Random(f"flink {seed}/{number}") for number in range(rounds)]
    found = merged(verdict for chance in chances for verdict in _round(spark, chance))
    return Suite(name, f"{SOURCE}, in {rounds} rounds", found)


def merged(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return one verdict per case; a case that was wrong once is wrong."""
    found: dict[str, Verdict] = {}
    for verdict in verdicts:
        if verdict.case not in found or found[verdict.case].outcome != WRONG:
            found[verdict.case] = verdict
    return [*found.values()]


def _round(spark: SparkSession, chance: Random) -> list[Verdict]:
    rows = {name: _rows(chance, name) for name in ("a", "b")}
    asked = queries(chance)
    with tempfile.TemporaryDirectory(prefix="rowtime-flink-") as work, Session() as flink:
        folder = Path(work)
        for name, its in rows.items():
            _write(folder, name, its)
            flink.table(
                name, COLUMNS.replace("at ", "`at` "), str(folder / f"{name}.csv"), "`at` - INTERVAL '0' SECOND"
            )
        flink.run(VERSIONED)
        definitions = "".join(
            f"CREATE STREAM {name} ({OURS}) USING parquet OPTIONS (path '{folder}/{name}', rowtime.column 'rowtime');\n"
            for name in rows
        )
        return [_verdict(spark, flink, folder, definitions, query) for query in asked]


def _verdict(spark: SparkSession, flink: Session, folder: Path, definitions: str, query: Query) -> Verdict:
    problems = [one for one in rt.check(definitions + query.ours) if not one.warns]
    if query.refused:
        if query.refused in [one.code for one in problems]:
            return Verdict(query.name, REFUSED, f"{query.refused}: {query.because}")
        return Verdict(query.name, WRONG, f"not refused with {query.refused}")
    if problems:
        return Verdict(query.name, WRONG, f"{problems[0].code} {problems[0].message}")
    try:
        ours = _ours(spark, folder, definitions, query)
    except RowtimeError as error:
        return Verdict(query.name, WRONG, str(error))
    theirs = Counter(tuple(map(_plain, row)) for row in flink.rows(query.theirs))
    if ours != theirs:
        said = f"only in Flink {[*(theirs - ours).elements()][:3]}, only in rowtime {[*(ours - theirs).elements()][:3]}"
        return Verdict(query.name, WRONG, f"{said}\n{query.ours}\n{query.theirs}")
    return Verdict(query.name, DIFFERENT, query.rule) if query.rule else Verdict(query.name, RIGHT)


def _ours(spark: SparkSession, folder: Path, definitions: str, query: Query) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()

    def take(batch: rt.Batch) -> None:
        if batch.count:
            found.update(tuple(map(_plain, [*row.values()][1:])) for row in batch.table().to_pylist())

    with tempfile.TemporaryDirectory(dir=folder) as place:
        made = rt.Pipeline(spark, home=Path(place) / "home").sql(
            f"{definitions}CREATE PUMP p AS INSERT INTO o {query.ours};"
        )
        made.sink("o", take).run_available(Path(place) / "check", end=True)
    return found


def _rows(chance: Random, stream: str) -> list[Mapping[str, Any]]:
    at, rows = BEGIN, list[Mapping[str, Any]]()
    for _ in range(60):
        at += dt.timedelta(seconds=chance.choice((1, 7, 31, 60, 95)), milliseconds=2 * chance.randint(0, 400))
        time = at + dt.timedelta(milliseconds=stream == "b")
        values = {
            "k": chance.choice(("x", "y", "z")),
            "v": chance.randint(-5, 6),
            "d": chance.choice((0.5, -1.25, 3.0)),
        }
        rows.append({**values, "at": time})
    return rows


def _write(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    with (folder / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        for row in rows:
            writer.writerow([row["k"], row["v"], row["d"], f"{row['at']:%Y-%m-%d %H:%M:%S.%f}"[:-3]])
    table = pa.Table.from_pylist([
        {"rowtime": row["at"].replace(tzinfo=dt.UTC), **row, "at": row["at"].replace(tzinfo=dt.UTC)} for row in rows
    ], pa.schema({"rowtime": pa.timestamp("us", "UTC"), "k": pa.string(), "v": pa.int32(), "d": pa.float64(),
                  "at": pa.timestamp("us", "UTC")}))  # fmt: skip
    (folder / name).mkdir()
    pq.write_table(table, folder / name / "0.parquet")


def _plain(value: Any) -> Any:
    """Return a value as text or number, so that both systems spell it alike."""
    if isinstance(value, dt.datetime):
        return _time(f"{value:%Y-%m-%d %H:%M:%S.%f}")
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return float(f"{float(value):.9g}") + 0.0
    if isinstance(value, str) and value[:2] == "20" and value[4:5] == "-":
        return _time(value.replace("T", " ").removesuffix("Z"))
    if isinstance(value, str):
        try:
            return float(f"{float(value):.9g}") + 0.0
        except ValueError:
            return value
    return value


def _time(text: str) -> str:
    """Return a time without the zeros at the end of its fraction, which Flink omits."""
    return text.rstrip("0").removesuffix(".") if "." in text else text
