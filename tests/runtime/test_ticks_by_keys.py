"""Groups and joins step in the tasks of their keys: several tasks have a part of the state each."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.operators.joins.join import Join
from rowtime.plan.levels import Levels
from rowtime.plan.program import compile_script
from rowtime.runtime.executors import executor as executor_module
from rowtime.runtime.executors.executor import InProcess, SparkJob
from rowtime.runtime.executors.level_ticks import KeysTick, LastTick
from rowtime.runtime.executors.tasks import Tasks
from rowtime.state import shards
from tests.laws.test_laws_in_levels import Changing
from tests.runtime.test_ticks_in_levels import Counting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.operators.contract import Delta, Tick
    from rowtime.runtime.executors.executor import Executor

SQL: Final = """
CREATE STREAM bids (auction BIGINT, price DECIMAL(12, 2), ev TIMESTAMP) USING parquet OPTIONS (path '{source}/bids');
CREATE STREAM auctions (id BIGINT, seller STRING, ev TIMESTAMP) USING parquet OPTIONS (path '{source}/auctions');
CREATE VIEW b AS SELECT STREAM ev AS ROWTIME, auction, price FROM bids ORDER BY ev WITHIN INTERVAL '2' SECOND;
CREATE VIEW a AS SELECT STREAM ev AS ROWTIME, id, seller FROM auctions ORDER BY ev WITHIN INTERVAL '2' SECOND;
CREATE VIEW offers AS SELECT STREAM a.seller, a.id, b.price FROM a {join}
  b ON a.id = b.auction AND b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '8' SECOND;
CREATE STREAM best (m TIMESTAMP, id BIGINT, seller STRING, n BIGINT, p DECIMAL(12, 2))
  USING parquet OPTIONS (path '{out}', ordered 'false');
CREATE PUMP p AS INSERT INTO best SELECT STREAM CEIL(o.ROWTIME TO MINUTE) AS m, id, seller, COUNT(*) AS n, MAX(price)
  FROM offers AS o GROUP BY CEIL(o.ROWTIME TO MINUTE), id, seller;
SELECT STREAM id, seller, price FROM offers WHERE price > 20.00;
"""
BEGIN: Final = 1_704_067_200_000_000
FILES, ROWS = 18, 200


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance = tmp_path_factory.mktemp("in"), random.Random(1)
    for stream, each in (("auctions", ROWS // 4), ("bids", ROWS)):
        (folder / stream).mkdir()
        for number in range(FILES):
            begin = BEGIN + number * 20_000_000
            times = sorted(begin + chance.randrange(20) * 1_000_000 for _ in range(each))
            ids = pa.array([None if chance.random() < 0.02 else chance.randrange(200) for _ in times], pa.int64())
            columns: dict[str, Any] = {"auction": ids}
            if stream == "bids":
                columns["price"] = pa.array([chance.randrange(9000) for _ in times], pa.int64()).cast(
                    pa.decimal128(19, 0)
                )
                columns["price"] = columns["price"].cast(pa.decimal128(12, 2))
            else:
                columns = {"id": ids, "seller": [f"s{chance.randrange(5)}" for _ in times]}
            table = pa.table({**columns, "ev": pa.array(times, pa.timestamp("us"))})
            pq.write_table(table, folder / stream / f"{number}.parquet")
    return folder


def run(
    spark: SparkSession,
    place: Path,
    source: Path,
    executors: Sequence[Executor | None],
    *,
    join: str = "JOIN",
    files: int = 2,
) -> dict[str, Any]:
    """Run the pipeline; after each tick it is stopped, and goes on with the next of the executors."""
    pipeline = rt.Pipeline(spark, home=place / "home", small_ticks="driver")
    pipeline.sql(SQL.format(source=source, out=place / "out", join=join))
    got: list[Any] = []
    pipeline.sink("result", lambda batch: got.append((batch.tick, batch.table().to_pylist())))
    entry: dict[str, Any] = {}
    parts, shared = Counter[int](), Counter[str]()
    for executor in cycle(executors):
        engine = pipeline._engine(place / "check", rt.Limits(files=files), ends=True)
        engine.tasks = None if executor is None else Tasks(executor).over(engine.sources.values())
        report = engine.tick()
        entry = dict(engine.entry)
        engine.stop()
        if report is None:
            break
        parts[report.cost.spread.tasks] += 1
        shared.update(text for of in entry["segments"].values() for s in of for text in s[7:8])
    rows = [row for file in (place / "out").glob("*.parquet") for row in pq.read_table(file).to_pylist()]
    own = ("link", "proof")  # of this checkpoint
    scalars = {name: {key: of[key] for key in of if key not in own} for name, of in entry["control"].items()}
    return {
        "rows": got,
        "best": sorted(rows, key=repr),
        "totals": dict(entry["totals"]),
        "held": dict(entry["held"]),
        "scalars": scalars,
        "parts": parts,
        "shards": shared,
    }


SAME: Final = ("rows", "best", "totals", "held", "scalars")


@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "FULL JOIN"])
def test_the_number_of_tasks_may_change_with_every_tick_and_start(
    spark: SparkSession, tmp_path: Path, source: Path, join: str
) -> None:
    driver = run(spark, tmp_path / "driver", source, [None], join=join)
    tasks = run(spark, tmp_path / "tasks", source, [Changing(), InProcess(3), None, InProcess(2)], join=join)
    for name in SAME:
        assert tasks[name] == driver[name], name
    assert len(tasks["parts"]) > 2
    assert len(tasks["shards"]) > 5
    assert driver["rows"]


@dataclass(frozen=True)
class ByKeys(Counting):
    """Jobs of Spark that always have tasks of keys."""

    few: int = 0
    few_bytes: int = 0

    def by_keys(self, spark: SparkSession) -> int:
        """Return the number of tasks, as of a cluster."""
        return self.tasks(spark)


def test_tasks_of_spark_give_the_same(spark: SparkSession, tmp_path: Path, source: Path) -> None:
    executor = ByKeys()
    driver = run(spark, tmp_path / "driver", source, [None])
    tasks = run(spark, tmp_path / "tasks", source, [executor])
    for name in SAME:
        assert tasks[name] == driver[name], name
    assert {*executor.keyed} == {3}
    assert tasks["parts"] == Counter(many + 3 + 1 for many in executor.ticks)
    assert {*tasks["shards"]} >= {"0-20 of 64 by a_id", "21-41 of 64 by a_id", "42-63 of 64 by a_id"}


def test_few_rows_go_to_one_task(spark: SparkSession, tmp_path: Path, source: Path) -> None:
    """The first tick shows how many bytes go from level to level."""
    executor = replace(ByKeys(), few_bytes=1 << 20)
    pipeline = rt.Pipeline(spark, home=tmp_path / "home", small_ticks="driver")
    pipeline.sql(SQL.format(source=source, out=tmp_path / "out", join="JOIN"))
    pipeline.sink("result", lambda batch: batch.table())
    engine = pipeline._engine(tmp_path / "check", rt.Limits(files=3), ends=True)
    engine.tasks = Tasks(executor).over(engine.sources.values())
    while engine.tick() is not None:
        pass
    engine.stop()
    assert executor.keyed == [3] + [0] * (FILES // 3 - 1)


def test_arrival_times_that_go_back_need_all_rows_of_their_writer(spark: SparkSession, tmp_path: Path) -> None:
    """A row without a rowtime is not earlier than those before it, which another task may have."""
    pipeline = rt.Pipeline(spark, home=tmp_path / "home", small_ticks="driver")
    pipeline.sql("CREATE STREAM a (v INT); SELECT STREAM v, ROWTIME AS at FROM a;")
    stream = pipeline.compile().defines[0]
    pipeline.home.define(stream.name, stream.as_json())
    with rt.writer("a", home=tmp_path / "home", writer="w") as log:
        for number in range(4):
            log.insert([{"v": number}] if number else [{"v": 0, "rowtime": "2199-01-01 00:00:00"}])
        log.end()
    got: list[Any] = []
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist()))
    engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=True)
    engine.tasks = Tasks(InProcess(2))
    while engine.tick() is not None:
        pass
    engine.stop()
    assert [(row["v"], row["at"].year) for row in got] == [(number, 2199) for number in range(4)]


# -- where keys divide a plan -----------------------------------------------------------------

STREAMS: Final = "CREATE STREAM a (k {k}, v INT); CREATE STREAM b (k {k}, w INT);"
PLANS: Final = {
    "SELECT STREAM k, COUNT(*) AS n, CEIL(a.ROWTIME TO MINUTE) AS m FROM a GROUP BY k, CEIL(a.ROWTIME TO MINUTE)": 1,
    "SELECT STREAM COUNT(*) AS n FROM a GROUP BY CEIL(a.ROWTIME TO MINUTE)": 1,
    "SELECT STREAM a.v, b.w FROM a JOIN b ON a.k = b.k AND a.ROWTIME = b.ROWTIME": 1,
    "SELECT STREAM a.v, b.w FROM a JOIN b ON a.ROWTIME = b.ROWTIME": 0,
    "SELECT STREAM a.v, b.w FROM a JOIN b ON a.v < b.w AND a.ROWTIME = b.ROWTIME": 0,
    "SELECT STREAM a.v, x.v AS w FROM a JOIN a AS x ON a.k = x.k AND a.ROWTIME = x.ROWTIME": 0,  # two read one stream
    "SELECT STREAM k, SUM(v) OVER (PARTITION BY k ORDER BY ROWTIME RANGE INTERVAL '1' MINUTE PRECEDING) FROM a": 0,
}


@pytest.mark.parametrize("sql", PLANS)
def test_which_operators_go_by_keys(sql: str) -> None:
    program = compile_script(f"{STREAMS.format(k='STRING')} {sql};")
    assert not program.problems, program.problems
    assert len(Levels.of(program.operators).keyed) == PLANS[sql]


@pytest.mark.parametrize("kind", ["DOUBLE", "STRING COLLATE UTF8_LCASE", "ARRAY<INT>"])
def test_joins_by_values_that_are_equal_in_other_bytes_do_not(kind: str) -> None:
    program = compile_script(
        f"{STREAMS.format(k=kind)} SELECT STREAM a.v, b.w FROM a JOIN b ON a.k = b.k AND a.ROWTIME = b.ROWTIME;"
    )
    assert not program.problems, program.problems
    assert not Levels.of(program.operators).keyed


# -- faults -----------------------------------------------------------------------------------


def _a_hash_by_place(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = shards.hashes

    def wrong(columns: Sequence[pa.Array]) -> Any:
        wide = any(pa.types.is_int64(column.type) for column in columns)
        return hashes([pa.array(range(len(columns[0])))] if wide else columns)

    monkeypatch.setattr(shards, "hashes", wrong)


def _a_shard_that_is_read_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards.ShardLog, "has_all", lambda *_given: True)


def _a_shard_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    cover = shards.Shards.cover
    monkeypatch.setattr(shards.Shards, "cover", lambda self, *given: cover(self, *given) or False)


def _a_lost_report(monkeypatch: pytest.MonkeyPatch) -> None:
    gather = LastTick.gather
    monkeypatch.setattr(LastTick, "gather", lambda self, levels, parts: gather(self, levels, parts[:1]))


@pytest.mark.parametrize(
    "plant",
    [_a_hash_by_place, _a_shard_that_is_read_twice, _a_shard_that_nobody_reads, _a_lost_report],
    ids=lambda plant: plant.__name__.strip("_"),
)
def test_a_planted_fault_is_caught(
    spark: SparkSession, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, plant: Any
) -> None:
    driver = run(spark, tmp_path / "driver", source, [None])
    plant(monkeypatch)
    tasks = run(spark, tmp_path / "tasks", source, [InProcess(3), InProcess(2)])
    assert {name for name in SAME if tasks[name] != driver[name]} & {"rows", "best"}


def test_tasks_that_do_not_agree_are_noticed(
    spark: SparkSession, tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One task then computes the tick."""
    step, whole, said = Join.step, executor_module.computed_whole, Counter[str]()

    def differs(self: Join, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        given = step(self, tick, deltas)
        if isinstance(tick, KeysTick):
            tick.remember(self, met=[tick._shards.first, 0])
        return given

    def counted(*given: Any, **more: Any) -> bytes:
        packed = whole(*given, **more)
        said[pickle.loads(packed).undivided] += 1  # noqa: S301 - our own
        return packed

    monkeypatch.setattr(Join, "step", differs)
    monkeypatch.setattr(executor_module, "computed_whole", counted)
    driver = run(spark, tmp_path / "driver", source, [None])
    tasks = run(spark, tmp_path / "tasks", source, [InProcess(3)])
    assert [name for name in SAME if tasks[name] != driver[name]] == []
    assert [*said] == ["DiffersError: the scalars of offers.join"]


@pytest.mark.parametrize(
    ("master", "cores", "executor_cores", "expected"),
    [
        ("local[4]", 4, None, 0),
        ("local[*]", 4, None, 0),
        ("local", 1, None, 0),
        ("local-cluster[2,2,1024]", 4, None, 4),
        ("spark://host:7077", 6, "2", 6),
        ("spark://host:7077", 2, "2", 0),
        ("yarn", 200, "4", 200),
        ("k8s://host", 5, None, 5),
    ],
)
def test_tasks_of_keys_are_for_several_executors(
    monkeypatch: pytest.MonkeyPatch, master: str, cores: int, executor_cores: str | None, expected: int
) -> None:
    """One task uses all cores of its executor."""

    class Conf:
        def get(self, name: str, default: str) -> str:
            return {"spark.master": master, "spark.executor.cores": executor_cores or default}.get(name, default)

    class Session:
        conf = Conf()

    monkeypatch.setattr(SparkJob, "tasks", lambda *_given: cores)
    assert SparkJob().by_keys(Session()) == expected  # type: ignore[arg-type]
