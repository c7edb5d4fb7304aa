"""Two ways to compute a tick in one Spark job, beside what there is: the measurements of docs/design/two-ways.md.

``tasks``: the tick is a chain of ``mapInArrow`` steps with a shuffle between them. DuckDB computes inside the tasks, and
Arrow tables cross the shuffle as blobs. ``catalyst``: one DataFrame composed of all operators, whose rows are tagged with
where they go, and written by its only action. Both keep state in files, and let out what the bound has passed.

    python -m benchmarks.two_ways [--events N] [--rounds N] [--only NAME]

Both are simplified to what costs time: no gates, no journal, no checksums. The answers are compared with Spark's batch.
"""

# A prototype, which stays as the source of figures until the engine has the better way.
# ruff: noqa: B023, E501, F401, I001, PLC0415, PLR0913, PTH123, RUF100
# mypy: ignore-errors

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - as everywhere

from benchmarks.data import CACHE
from benchmarks.nexmark import FILES, TICK, WARM, events
from examples.nexmark.queries import batched, difference, pipeline
import rowtime as rt

P: Final = 2
TICKS: Final = FILES // TICK
END: Final = 2**62
SECOND: Final = 1_000_000
BLOB: Final = "pid INT, edge INT, source INT, body BINARY"
LARGEST: Final = 4 << 20
"""Bytes of a blob."""
_kept: dict[str, Any] = {}


# -- what the tasks share -----------------------------------------------------------------


def duck() -> Any:
    """The connection of this worker, kept from task to task."""
    import duckdb

    if "duck" not in _kept:
        _kept["duck"] = duckdb.connect(config={"threads": 1})
        _kept["duck"].execute("SET TimeZone = 'UTC'")
    return _kept["duck"]


def packed(table: pa.Table) -> Iterator[bytes]:
    """A table as streams of Arrow's IPC, none much larger than ``LARGEST``."""
    rows = max(1, table.num_rows * LARGEST // max(LARGEST, table.nbytes))
    for start in range(0, max(1, table.num_rows), rows):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(start, rows))
        yield sink.getvalue().to_pybytes()


def shuffled(edges: Sequence[tuple[pa.Table, str]], source: int, mark: int) -> Iterator[pa.RecordBatch]:
    """The rows of each edge, by the partition in the column named with it; and the control record to every partition."""
    out: list[tuple[int, int, bytes]] = [(pid, -1, json.dumps({"mark": mark}).encode()) for pid in range(P)]
    for edge, (table, to) in enumerate(edges):
        for pid in range(P):
            mine = table.filter(pa.compute.equal(table[to], pid)).drop_columns([to])
            if mine.num_rows:
                out += [(pid, edge, body) for body in packed(mine)]
    yield blobs(out, source)


def blobs(out: Sequence[tuple[int, int, bytes]], source: int) -> pa.RecordBatch:
    pids, edges, bodies = zip(*out, strict=True)
    arrays = [pa.array(pids, pa.int32()), pa.array(edges, pa.int32()), pa.array([source] * len(out), pa.int32())]
    return pa.record_batch([*arrays, pa.array(bodies, pa.binary())], names=["pid", "edge", "source", "body"])


def received(batches: Iterable[pa.RecordBatch]) -> tuple[dict[int, pa.Table], dict[int, int]]:
    """The rows of each edge in the order of their sources, and the mark of each source."""
    rows: dict[int, list[tuple[int, pa.Table]]] = {}
    marks: dict[int, int] = {}
    for batch in batches:
        for edge, source, body in zip(*(batch.column(n) for n in (1, 2, 3)), strict=True):
            if edge.as_py() < 0:
                marks[source.as_py()] = json.loads(body.as_py())["mark"]
            else:
                table = pa.ipc.open_stream(body.as_buffer()).read_all()
                rows.setdefault(edge.as_py(), []).append((source.as_py(), table))
    ordered = {edge: sorted(tables, key=lambda one: one[0]) for edge, tables in rows.items()}
    return {edge: pa.concat_tables([table for _, table in tables]) for edge, tables in ordered.items()}, marks


def store(table: pa.Table, path: str) -> int:
    """Write a durable file; return its rows."""
    pq.write_table(table, path, compression="lz4")
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    return table.num_rows


def chained(
    levels: Sequence[Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]], spark: SparkSession
) -> list:
    """Run a chain of levels as one job; return the reports."""
    rows = spark.range(0, P, 1, P).mapInArrow(levels[0], BLOB)
    for level in levels[1:]:
        rows = rows.repartitionById(P, "pid").mapInArrow(level, BLOB)
    return rows.toArrow().to_pylist()


@dataclass
class Tick:
    """One tick: files by stream, its number, where state and output go, and whether it is the last."""

    files: Mapping[str, Sequence[str]]
    number: int
    place: str
    last: bool
    bounds: Mapping[str, int] = field(default_factory=dict)

    def of(self, stream: str, task: int) -> list[str]:
        return list(self.files[stream][task::P])

    def state(self, name: str, pid: int, number: int | None = None) -> str:
        return f"{self.place}/state/{name}-{self.number if number is None else number}-{pid}.parquet"

    def before(self, name: str, pid: int) -> pa.Table | None:
        path = self.state(name, pid, self.number - 1)
        return pq.read_table(path) if Path(path).exists() else None

    def output(self, pid: int) -> str:
        return f"{self.place}/out/{self.number:06d}-{pid}.parquet"

    def bound(self, marks: Mapping[int, int]) -> int:
        return END if self.last else max(marks.values())


def partition_of(batches: Iterable[pa.RecordBatch]) -> int:
    """The number in the one row that a task of the first level is given.

    The input is read to its end: otherwise Spark ends the Python worker, and the next task starts a new one.
    """
    [batch] = [batch for batch in batches if batch.num_rows]
    return batch.column(0)[0].as_py()


def with_state(rows: pa.Table | None, kept: pa.Table | None, schema: pa.Schema) -> pa.Table:
    tables = [table.cast(schema) for table in (kept, rows) if table is not None]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def reported(pid: int, counts: Mapping[str, int]) -> pa.RecordBatch:
    return blobs([(pid, -2, json.dumps(counts).encode())], pid)


# -- q5 -----------------------------------------------------------------------------------

COUNTS: Final = pa.schema({"w": pa.int64(), "auction": pa.int64(), "num": pa.int64()})
_HOPS: Final = """SELECT w, auction, sum(n)::BIGINT AS num, CAST(abs(w // 2000000) % {p} AS INT) AS pid FROM (
  SELECT (slice - unnest(range(5))) * 2000000 AS w, auction, n FROM (
    SELECT epoch_us(dateTime) // 2000000 AS slice, auction, count(*) AS n FROM read_parquet({files}) GROUP BY ALL
  )
) GROUP BY ALL"""


def q5_tasks(tick: Tick, spark: SparkSession) -> None:
    def first(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = partition_of(batches)
        files = tick.of("bid", task)
        rows = duck().sql(_HOPS.format(p=P, files=files)).to_arrow_table()
        mark = duck().sql(f"SELECT max(epoch_us(dateTime)) FROM read_parquet({files})").fetchall()[0][0]
        yield from shuffled([(rows, "pid")], task, mark)

    def second(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = list(batches)
        pid = batches[0].column(0)[0].as_py()
        edges, marks = received(batches)
        rows = with_state(edges.get(0), tick.before("counts", pid), COUNTS)
        bound = tick.bound(marks) - 10 * SECOND
        con = duck()
        con.register("rows", rows)
        done = con.sql(
            "SELECT w AS window_start, w + 10000000 AS window_end, auction, num FROM ("
            f" SELECT w, auction, sum(num)::BIGINT AS num FROM rows WHERE w <= {bound} GROUP BY ALL"
            ") QUALIFY num >= max(num) OVER (PARTITION BY w) ORDER BY ALL"
        ).to_arrow_table()
        left = con.sql(f"SELECT w, auction, sum(num)::BIGINT AS num FROM rows WHERE w > {bound} GROUP BY ALL")
        kept = left.to_arrow_table()
        counts = {"out": store(done, tick.output(pid)), "state": store(kept, tick.state("counts", pid))}
        yield reported(pid, counts)

    chained([first, second], spark)


def q5_catalyst(tick: Tick, spark: SparkSession) -> None:
    bids = spark.read.schema("auction BIGINT, dateTime TIMESTAMP").parquet(*tick.files["bid"])
    slices = bids.selectExpr("unix_micros(dateTime) DIV 2000000 AS slice", "auction").repartition(P, "auction")
    slices = slices.groupBy("slice", "auction").agg(F.expr("count(*) AS n"))
    hops = slices.selectExpr("slice", "explode(sequence(0L, 4L)) AS k", "auction", "n")
    hops = hops.selectExpr("(slice - k) * 2000000 AS w", "auction", "n AS num")
    kept = kept_rows(spark, tick, "w BIGINT, auction BIGINT, num BIGINT", "counts")
    whole = (
        (hops if kept is None else hops.union(kept))
        .repartition(P, "w")
        .groupBy("w", "auction")
        .agg(F.expr("sum(num) AS num"))
    )
    bound = END if tick.last else tick.bounds["bid"] - 10 * SECOND
    most = whole.withColumn("most", F.max("num").over(Window.partitionBy("w")))
    routed = most.selectExpr(
        "w", "auction", "num", f"CASE WHEN w > {bound}L THEN 1 WHEN num >= most THEN 0 END AS route"
    )
    written(
        routed.where("route IS NOT NULL"),
        tick,
        {0: ("out", ["w", "auction", "num"]), 1: ("counts", ["w", "auction", "num"])},
    )


# -- q20 ----------------------------------------------------------------------------------

_BID: Final = "auction, bidder, price, channel, url, epoch_us(dateTime) AS t, extra"
_AUCTION: Final = "id, itemName, description, initialBid, reserve, epoch_us(dateTime) AS opened, epoch_us(expires) AS expires, seller, category"
BIDS: Final = pa.schema(
    {"auction": pa.int64(), "bidder": pa.int64(), "price": pa.int64(), "channel": pa.string(), "url": pa.string(),
     "t": pa.int64(), "extra": pa.string()}
)  # fmt: skip
AUCTIONS: Final = pa.schema(
    {"id": pa.int64(), "itemName": pa.string(), "description": pa.string(), "initialBid": pa.int64(),
     "reserve": pa.int64(), "opened": pa.int64(), "expires": pa.int64(), "seller": pa.int64(), "category": pa.int64()}
)  # fmt: skip


def _first_of_join(tick: Tick, bid: str, auction: str, where: str) -> Callable[..., Iterator[pa.RecordBatch]]:
    def first(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = partition_of(batches)
        con, files = duck(), {stream: tick.of(stream, task) for stream in ("bid", "auction")}
        bids = con.sql(f"SELECT {bid}, CAST(hash(auction) % {P} AS INT) AS pid FROM read_parquet({files['bid']})")
        bids = bids.to_arrow_table()
        opened = con.sql(
            f"SELECT {auction}, CAST(hash(id) % {P} AS INT) AS pid FROM read_parquet({files['auction']}) {where}"
        )
        opened = opened.to_arrow_table()
        marks = [
            con.sql(f"SELECT max(epoch_us(dateTime)) FROM read_parquet({files[name]})").fetchall()[0][0]
            for name in ("bid", "auction")
        ]
        yield from shuffled([(bids, "pid"), (opened, "pid")], task, min(marks))

    return first


def q20_tasks(tick: Tick, spark: SparkSession) -> None:
    def second(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = list(batches)
        pid = batches[0].column(0)[0].as_py()
        edges, marks = received(batches)
        bids = with_state(edges.get(0), tick.before("bids", pid), BIDS)
        opened = with_state(edges.get(1), tick.before("auctions", pid), AUCTIONS)
        bound, con = tick.bound(marks), duck()
        con.register("bids", bids)
        con.register("opened", opened)
        done = con.sql(
            "SELECT * FROM bids JOIN opened ON id = auction AND t BETWEEN opened AND opened + 10000000"
            f" WHERE t <= {bound} ORDER BY t"
        ).to_arrow_table()
        later = con.sql(f"SELECT * FROM bids WHERE t > {bound}").to_arrow_table()
        live = con.sql(f"SELECT * FROM opened WHERE opened >= {bound} - 10000000").to_arrow_table()
        counts = {"out": store(done, tick.output(pid))}
        store(later, tick.state("bids", pid))
        store(live, tick.state("auctions", pid))
        yield reported(pid, counts)

    chained([_first_of_join(tick, _BID, _AUCTION, "WHERE category = 10"), second], spark)


def _sides(
    tick: Tick, spark: SparkSession, bid: str, auction: str, where: str, kinds: tuple[str, str]
) -> tuple[DataFrame, DataFrame]:
    def given(stream: str, columns: str) -> DataFrame:
        return spark.read.parquet(*tick.files[stream]).selectExpr(
            *columns.replace("epoch_us", "unix_micros").split(", ")
        )

    bids, opened = given("bid", bid), given("auction", auction).where(where)
    kept = [kept_rows(spark, tick, kind, name) for kind, name in zip(kinds, ("bids", "auctions"), strict=True)]
    bids = bids if kept[0] is None else bids.union(kept[0])
    opened = opened if kept[1] is None else opened.union(kept[1])
    return bids.repartition(P, "auction"), opened.repartition(P, "id")


def _ddl(schema: pa.Schema) -> str:
    return ", ".join(f"{one.name} {'BIGINT' if one.type == pa.int64() else 'STRING'}" for one in schema)


def q20_catalyst(tick: Tick, spark: SparkSession) -> None:
    bids, opened = _sides(tick, spark, _BID, _AUCTION, "category = 10", (_ddl(BIDS), _ddl(AUCTIONS)))
    bound = END if tick.last else min(tick.bounds.values())
    met = bids.where(f"t <= {bound}L").join(opened, F.expr("id = auction AND t BETWEEN opened AND opened + 10000000L"))
    routes = [met.sortWithinPartitions("t").selectExpr("*", "0 AS route")]
    routes += [bids.where(f"t > {bound}L").selectExpr("*", "1 AS route")]
    routes += [opened.where(f"opened >= {bound}L - 10000000L").selectExpr("*", "2 AS route")]
    rows = routes[0].unionByName(routes[1], allowMissingColumns=True).unionByName(routes[2], allowMissingColumns=True)
    both = [*BIDS.names, *AUCTIONS.names]
    written(rows, tick, {0: ("out", both), 1: ("bids", BIDS.names), 2: ("auctions", AUCTIONS.names)})


# -- q4 -----------------------------------------------------------------------------------

_B4: Final = "auction, price, epoch_us(dateTime) AS t"
_A4: Final = "id, category, epoch_us(dateTime) AS opened, epoch_us(expires) AS expires"
B4: Final = pa.schema({name: pa.int64() for name in ("auction", "price", "t")})
A4: Final = pa.schema({name: pa.int64() for name in ("id", "category", "opened", "expires")})
G4: Final = pa.schema({name: pa.int64() for name in ("id", "category", "opened", "final")})
C4: Final = pa.schema({name: pa.int64() for name in ("category", "total", "many")})
_PAIRS: Final = "id = auction AND t BETWEEN opened AND opened + 10000000 AND t <= expires"
_WINDOW: Final = "OVER (PARTITION BY category ORDER BY opened // 1000000, id ROWS UNBOUNDED PRECEDING)"


def q4_tasks(tick: Tick, spark: SparkSession) -> None:
    def second(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = list(batches)
        pid = batches[0].column(0)[0].as_py()
        edges, marks = received(batches)
        bound, con = tick.bound(marks), duck()
        con.register("bids", with_state(edges.get(0), tick.before("bids", pid), B4))
        con.register("opened", with_state(edges.get(1), tick.before("auctions", pid), A4))
        groups = con.sql(
            f"SELECT id, category, opened, max(price) AS final FROM bids JOIN opened ON {_PAIRS} WHERE t <= {bound} GROUP BY ALL"
        ).to_arrow_table()
        con.register("groups", with_state(groups, tick.before("groups", pid), G4))
        ends = (bound - 10 * SECOND) // SECOND * SECOND
        whole = "SELECT id, category, opened, max(final) AS final, CAST(category % {} AS INT) AS pid FROM groups WHERE {} GROUP BY ALL"
        closed = con.sql(whole.format(P, f"opened < {ends}")).to_arrow_table()
        open_ = con.sql(whole.format(P, f"opened >= {ends}")).to_arrow_table().drop_columns(["pid"])
        store(con.sql(f"SELECT * FROM bids WHERE t > {bound}").to_arrow_table(), tick.state("bids", pid))
        store(
            con.sql(f"SELECT * FROM opened WHERE opened >= {bound} - 10000000").to_arrow_table(),
            tick.state("auctions", pid),
        )
        store(open_, tick.state("groups", pid))
        yield from shuffled([(closed, "pid")], pid, bound)

    def third(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = list(batches)
        pid = batches[0].column(0)[0].as_py()
        edges, _ = received(batches)
        con = duck()
        con.register("closed", with_state(edges.get(0), None, G4))
        con.register("sums", with_state(None, tick.before("sums", pid), C4))
        running = con.sql(
            f"SELECT id, category, (coalesce(total, 0) + sum(final) {_WINDOW}) / (coalesce(many, 0) + count(*) {_WINDOW})"
            " AS average FROM closed LEFT JOIN sums USING (category) ORDER BY opened // 1000000, id"
        ).to_arrow_table()
        sums = con.sql(
            "SELECT category, sum(total)::BIGINT AS total, sum(many)::BIGINT AS many FROM (SELECT * FROM sums UNION ALL"
            " SELECT category, sum(final), count(*) FROM closed GROUP BY ALL) GROUP BY ALL"
        ).to_arrow_table()
        counts = {"out": store(running, tick.output(pid)), "state": store(sums, tick.state("sums", pid))}
        yield reported(pid, counts)

    chained([_first_of_join(tick, _B4, _A4, ""), second, third], spark)


def q4_catalyst(tick: Tick, spark: SparkSession) -> None:
    bids, opened = _sides(tick, spark, _B4, _A4, "true", (_ddl(B4), _ddl(A4)))
    bound = END if tick.last else min(tick.bounds.values())
    ends = (bound - 10 * SECOND) // SECOND * SECOND
    pairs = bids.where(f"t <= {bound}L").join(opened, F.expr(_PAIRS))
    groups = pairs.groupBy("id", "category", "opened").agg(F.expr("max(price) AS final"))
    kept = kept_rows(spark, tick, _ddl(G4), "groups")
    if kept is not None:
        groups = (
            groups.union(kept.repartition(P, "id"))
            .groupBy("id", "category", "opened")
            .agg(F.expr("max(final) AS final"))
        )
    closed = groups.where(f"opened < {ends}L").selectExpr("*", "0L AS total", "0L AS many")
    sums = kept_rows(spark, tick, _ddl(C4), "sums")
    if sums is not None:
        closed = closed.union(sums.selectExpr("-1L", "category", "-1L", "0L", "total", "many"))
    by = (
        Window.partitionBy("category")
        .orderBy(F.expr("opened DIV 1000000"), "id")
        .rowsBetween(Window.unboundedPreceding, 0)
    )
    whole = Window.partitionBy("category")
    closed = closed.selectExpr("*", "IF(id = -1, total, final) AS v", "IF(id = -1, many, 1L) AS n")
    running = closed.select(
        "id", "category", "opened", "final",
        F.sum("v").over(by).alias("vs"), F.sum("n").over(by).alias("ns"),
        F.sum("v").over(whole).alias("total"), F.sum("n").over(whole).alias("many"),
        F.row_number().over(Window.partitionBy("category").orderBy("id")).alias("nth"),
    )  # fmt: skip
    out = running.where("id >= 0").selectExpr("id", "category", "vs / ns AS average", "0 AS route")
    sums = running.where("nth = 1").selectExpr("category", "total", "many", "3 AS route")
    rows = out.unionByName(sums, allowMissingColumns=True)
    for frame in (
        bids.where(f"t > {bound}L").selectExpr("*", "1 AS route"),
        opened.where(f"opened >= {bound}L - 10000000L").selectExpr("*", "2 AS route"),
        groups.where(f"opened >= {ends}L").selectExpr("*", "4 AS route"),
    ):
        rows = rows.unionByName(frame, allowMissingColumns=True)
    written(rows, tick, {0: ("out", ["id", "category", "average"]), 1: ("bids", B4.names), 2: ("auctions", A4.names),
                         3: ("sums", C4.names), 4: ("groups", G4.names)})  # fmt: skip


# -- catalyst's files ---------------------------------------------------------------------


def kept_rows(spark: SparkSession, tick: Tick, kind: str, name: str) -> DataFrame | None:
    paths = [str(path) for path in Path(tick.place, "state").glob(f"{name}-{tick.number - 1}-*.parquet")]
    return spark.read.schema(kind).parquet(*paths) if paths else None


def written(rows: DataFrame, tick: Tick, routes: Mapping[int, tuple[str, Sequence[str]]]) -> None:
    """Write the rows of each route to files of its own, in the tasks; the one action of the tick."""

    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        pid, files = TaskContext.get().partitionId(), {}
        for batch in batches:
            for route, (name, columns) in routes.items():
                mine = batch.filter(pa.compute.equal(batch.column("route"), route)).select(list(columns))
                if mine.num_rows:
                    path = tick.output(pid) if name == "out" else tick.state(name, pid)
                    if route not in files:
                        files[route] = (path, pq.ParquetWriter(path, mine.schema, compression="lz4"))
                    files[route][1].write_batch(mine)
        for path, writer in files.values():
            writer.close()
            with open(path, "rb") as file:
                os.fsync(file.fileno())
        yield reported(pid, {"files": len(files)})

    rows.mapInArrow(write, BLOB).toArrow()


# -- runs ---------------------------------------------------------------------------------

WAYS: Final = {
    "q4": (q4_tasks, q4_catalyst),
    "q5": (q5_tasks, q5_catalyst),
    "q20": (q20_tasks, q20_catalyst),
}
COLUMNS: Final = {
    "q4": ["id", "category", "average"],
    "q5": ["window_start", "auction", "num"],
    "q20": ["auction", "bidder", "t", "id"],
}


def run_ticks(way: Callable[[Tick, SparkSession], None], source: Path, place: Path, spark: SparkSession) -> list[float]:
    """The seconds of each tick."""
    shutil.rmtree(place, ignore_errors=True)
    for name in ("state", "out"):
        (place / name).mkdir(parents=True)
    streams = {name: sorted(map(str, (source / name).iterdir())) for name in ("bid", "auction")}
    spent = []
    for number in range(TICKS):
        files = {name: paths[number * TICK : (number + 1) * TICK] for name, paths in streams.items()}
        began = time.perf_counter()
        bounds = {name: max(map(greatest, paths)) for name, paths in files.items()}
        way(Tick(files, number, str(place), number == TICKS - 1, bounds), spark)
        spent.append(time.perf_counter() - began)
    return spent


def greatest(path: str) -> int:
    """The greatest dateTime of a file, by its footer."""
    meta = pq.ParquetFile(path).metadata
    at = meta.schema.to_arrow_schema().get_field_index("dateTime")
    return max(
        int(meta.row_group(n).column(at).statistics.max.timestamp() * 1_000_000 + 0.5)
        for n in range(meta.num_row_groups)
    )


def answer(place: Path, query: str) -> pa.Table:
    tables = [pq.read_table(path) for path in sorted((place / "out").iterdir())]
    rows = pa.concat_tables([table for table in tables if table.num_rows])
    return rows.rename_columns(["window_start" if name == "w" else name for name in rows.column_names]).select(
        COLUMNS[query]
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    spark = (
        SparkSession.builder.master(f"local[{P}]").config("spark.sql.shuffle.partitions", P).config("spark.ui.enabled", "false")
        .config("spark.sql.adaptive.enabled", "false").config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", 100_000).getOrCreate()
    )  # fmt: skip
    spark.sparkContext.setLogLevel("ERROR")
    few, many = events(WARM), events(given.events)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for query in [given.only] if given.only else WAYS:
            runs: dict[str, Callable[[Path], float]] = {
                name: lambda source, way=way, name=name: sum(run_ticks(way, source, place / name, spark))
                for name, way in zip(("tasks", "catalyst"), WAYS[query], strict=True)
            }
            runs["driver"] = lambda source: rowtime_today(query, source, place / "driver", spark)
            runs["batch"] = lambda source: batch(query, source, spark)
            spent: dict[str, list[float]] = {name: [] for name in runs}
            work: dict[str, list[float]] = {name: [] for name in runs}
            for number in range(given.rounds + 1):
                for name, run in runs.items():
                    before, seconds = processor(), run(many if number else few)
                    spent[name] += [seconds] if number else []
                    work[name] += [processor() - before] if number else []
            medians, cores = ({n: round(median(each), 2) for n, each in by.items()} for by in (spent, work))
            same = difference(answer(place / "tasks", query), answer(place / "catalyst", query)) or "equal"
            line = {"query": query, "seconds": medians, "processor_seconds": cores, "answers": same}
            print(json.dumps(line), flush=True)
        if not given.only:
            small(spark, place)


def processor() -> float:
    """Seconds of processor time of this process and of all that it started: on a busy machine better than a clock."""
    parents: dict[int, list[int]] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents.setdefault(int(fields[1]), []).append(int(entry.name))
            used[int(entry.name)] = sum(map(int, fields[11:15]))
    mine, total = [os.getpid()], 0
    while mine:
        process = mine.pop()
        total += used.get(process, 0)
        mine += parents.get(process, [])
    return total / os.sysconf("SC_CLK_TCK")


def rowtime_today(query: str, source: Path, place: Path, spark: SparkSession) -> float:
    shutil.rmtree(place, ignore_errors=True)
    made, began = pipeline(query, source, place / "home", spark), time.perf_counter()
    made.sink("result", lambda _batch: None).run_available(place / "checkpoint", end=True, limits=rt.Limits(files=TICK))
    return time.perf_counter() - began


def batch(query: str, source: Path, spark: SparkSession) -> float:
    from examples.nexmark.queries import spark_text

    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    for name in ("auction", "bid"):
        session.read.parquet(str(source / name)).createOrReplaceTempView(name)
    began = time.perf_counter()
    session.sql(spark_text(query)).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - began


def small(spark: SparkSession, place: Path) -> None:
    """A tick of 1,000 rows: GROUP BY minute and key, by an empty job, one task, two levels, and Catalyst."""
    rows = pa.table(
        {"ev": pa.array(range(0, 60_000_000, 60_000), pa.int64()), "k": pa.array([n % 10 for n in range(1000)])}
    )
    path = str(place / "small.parquet")
    pq.write_table(rows, path)
    text = f"SELECT ev // 60000000 AS m, k, count(*) AS n FROM read_parquet('{path}') GROUP BY ALL"

    def empty(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield reported(partition_of(batches), {})

    def one(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = partition_of(batches)
        yield reported(task, {"n": store(duck().sql(text).to_arrow_table(), f"{place}/small-out.parquet")})

    def first(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = partition_of(batches)
        table = duck().sql(f"SELECT *, CAST(k % 2 AS INT) AS pid FROM ({text})").to_arrow_table()
        yield from shuffled([(table if task == 0 else table.slice(0, 0), "pid")], task, 0)

    def second(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        batches = list(batches)
        pid = batches[0].column(0)[0].as_py()
        edges, _ = received(batches)
        yield reported(pid, {"n": store(edges[0], f"{place}/small-out-{pid}.parquet") if edges else 0})

    def catalyst() -> None:
        frame = (
            spark.read.schema("ev BIGINT, k BIGINT").parquet(path).selectExpr("ev DIV 60000000 AS w", "k AS auction")
        )
        counted = frame.groupBy("w", "auction").agg(F.expr("count(*) AS num")).selectExpr("*", "0 AS route")
        written(counted, Tick({}, 0, str(place), last=True), {0: ("out", ["w", "auction", "num"])})

    (place / "out").mkdir(exist_ok=True)
    forms: dict[str, Callable[[], Any]] = {
        "empty": lambda: spark.range(0, 1, 1, 1).mapInArrow(empty, BLOB).toArrow(),
        "one task": lambda: spark.range(0, 1, 1, 1).mapInArrow(one, BLOB).toArrow(),
        "two levels": lambda: chained([first, second], spark),
        "catalyst": catalyst,
    }
    spent: dict[str, list[float]] = {name: [] for name in forms}
    for number in range(23):
        for name, form in forms.items():
            began = time.perf_counter()
            form()
            spent[name] += [1000 * (time.perf_counter() - began)] if number > 2 else []
    print(
        json.dumps({"query": "1,000 rows", "ms": {name: round(median(each)) for name, each in spent.items()}}),
        flush=True,
    )


if __name__ == "__main__":
    main()
