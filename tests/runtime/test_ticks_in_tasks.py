"""Ticks that a task of Spark computes: the same answers as from the driver, in one job a tick."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.errors import Refused
from rowtime.runtime.executors.executor import InProcess
from rowtime.runtime.executors.tasks import Tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.engine import Engine
    from rowtime.runtime.executors.catalyst_steps import Questions
    from rowtime.runtime.executors.scans import StreamScan

SQL = """
CREATE STREAM a (k STRING, v INT, ev TIMESTAMP);
CREATE STREAM b (k STRING, w INT, ev TIMESTAMP);
CREATE STREAM minutes (m TIMESTAMP, k STRING, c BIGINT, s DOUBLE) USING parquet OPTIONS (path '{out}');
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM a ORDER BY ev WITHIN INTERVAL '10' SECOND;
CREATE VIEW others AS SELECT STREAM ev AS ROWTIME, k, w FROM b ORDER BY ev WITHIN INTERVAL '10' SECOND;
CREATE PUMP p AS INSERT INTO minutes
  SELECT STREAM FLOOR(t.ROWTIME TO MINUTE) AS m, k, COUNT(*) AS c, SUM(100 / v) AS s
  FROM sorted AS t GROUP BY FLOOR(t.ROWTIME TO MINUTE), k;
SELECT STREAM t.k, v, w, SUM(v) OVER (PARTITION BY t.k RANGE INTERVAL '1' MINUTE PRECEDING) AS last
FROM sorted AS t JOIN others AS o ON t.k = o.k
  AND o.ROWTIME BETWEEN t.ROWTIME - INTERVAL '20' SECOND AND t.ROWTIME + INTERVAL '20' SECOND;
"""
LATE = "2024-01-01 09:00:00"
TICKS = 4
ARRIVALS = ("a", "b", "sorted.select", "others.select")
"""Below the gates the rowtime is the time of arrival."""


def filled(place: Path, *, zero: bool = False) -> rt.Pipeline:
    """A pipeline whose logs have the rows of some ticks: out of order, and one too late; ``zero``: one fails."""
    pipeline = rt.Pipeline(home=place / "home").sql(SQL.format(out=place / "out"))
    for stream in pipeline.compile().defines:
        if stream.format == "log":
            pipeline.home.define(stream.name, stream.as_json())
    for stream, column in (("a", "v"), ("b", "w")):
        with rt.writer(stream, home=place / "home") as log:
            for tick in range(TICKS):
                times = [f"2024-01-01 10:{tick:02}:{second:02}" for second in (0, 20, 14, 40, 55)] + [LATE] * (
                    tick == 2
                )
                given = [{"k": "xy"[n % 2], column: n + 1 + tick, "ev": at} for n, at in enumerate(times)]
                log.insert([*given, {"k": "x", column: 0, "ev": times[4]}] if zero and tick == 1 else given)
    return pipeline


def run(spark: SparkSession, place: Path, small_ticks: str, **how: Any) -> Mapping[str, Any]:
    """Every tick from a new pipeline; return all that it has made."""
    filled(place, **how)
    got: list[tuple[int, int, list[Mapping[str, Any]]]] = []
    jobs, needs, entry, sinks = list[int](), set[str](), dict[str, Any](), list[Any]()
    for _ in range(TICKS + 1):
        pipeline = rt.Pipeline(spark, home=place / "home", small_ticks=small_ticks).sql(SQL.format(out=place / "out"))
        pipeline.sink("result", lambda batch: got.append((batch.tick, batch.first, batch.table().to_pylist())))
        engine = pipeline._engine(place / "check", rt.Limits(rows=6), ends=False)
        before = engine._job_times.next()
        report = engine.tick()
        jobs += [] if report is None else [engine._job_times.next() - before]
        needs |= {engine.tasks.needs} if engine.tasks is not None else set()
        entry = dict(engine.entry)
        sinks.append({name: known_of(of) for name, of in entry["control"].items() if "sequence" in of})
        engine.stop()
    minutes = [row for path in sorted((place / "out").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    clocks = {name: of for name, of in entry["clocks"].items() if name not in ARRIVALS}
    kept = {"totals": entry["totals"], "held": entry["held"], "clocks": clocks, "sinks": sinks}
    return {"rows": got, "minutes": minutes, "jobs": jobs, "needs": needs, **kept}


def known_of(control: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the journal knows of a target, without the random numbers of its deliveries."""
    return {**control, "link": "", "proof": control["proof"][:1]}


@pytest.mark.parametrize("zero", [False, True], ids=["", "with a row that fails"])
def test_the_answers_are_those_of_the_driver(spark: SparkSession, tmp_path: Path, zero: bool) -> None:
    mine = run(spark, tmp_path / "driver", "driver", zero=zero)
    theirs = run(spark, tmp_path / "spark", "spark", zero=zero)
    assert mine["rows"]
    assert mine["minutes"]
    assert mine["totals"]["sorted"]["LATE"] == 1
    for name in ("rows", "minutes", "totals", "held", "clocks", "sinks"):
        assert theirs[name] == mine[name], name
    assert theirs["needs"] == {""}
    assert max(theirs["jobs"]) == (2 if zero else 1), theirs["jobs"]
    if not zero:
        assert theirs["jobs"] == [1] * len(mine["jobs"])
        assert mine["jobs"] == [0] * len(mine["jobs"])


def test_a_function_of_the_user_is_computed_in_the_task(spark: SparkSession, tmp_path: Path) -> None:
    got: list[str] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home", small_ticks="spark")
    pipeline.python_function(lambda k: k.upper(), "STRING", "louder")
    pipeline.sql("CREATE STREAM a (k STRING); SELECT STREAM louder(k) AS k FROM a")
    pipeline.sink("result", lambda batch: got.extend(row["k"] for row in batch.table().to_pylist()))
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json())
    engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=False)
    jobs: list[int] = []
    for value in "xyz":
        with rt.writer("a", home=tmp_path / "home") as log:
            log.insert([{"k": value}])
        before = engine._job_times.next()
        engine.tick()
        jobs.append(engine._job_times.next() - before)
    assert engine.tasks is not None
    assert engine.tasks.needs == ""
    engine.stop()
    assert got == ["X", "Y", "Z"]
    assert jobs == [1, 1, 1]


SHOP = """
class Doubled:
    def columns(self, given):
        return [("d", "BIGINT")]

    def process(self, rows, state):
        import pyarrow.compute as pc
        return rows.select(["ROWTIME"]).append_column("d", pc.multiply(rows["a"], 2))
"""
TABLE = """
CREATE STREAM s (a BIGINT); CREATE FUNCTION f AS '{module}:Doubled'; INSERT INTO s (a) VALUES (1), (2);
SELECT STREAM d FROM STREAM(f(CURSOR(SELECT STREAM a FROM s))) AS t;
"""


def test_a_module_beside_the_script_is_found_in_a_task(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shop_of_tasks.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    assert _doubled(spark, tmp_path, "shop_of_tasks") == ([2, 4], "")


def test_code_that_is_not_where_the_task_is_stays_with_the_driver(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a class of a notebook, or a module that another machine does not have."""
    module = ModuleType("only_here")
    exec(SHOP, vars(module))  # noqa: S102 - a module without a file
    module.Doubled.__module__ = "only_here"
    monkeypatch.setitem(sys.modules, "only_here", module)
    got, needs = _doubled(spark, tmp_path, "only_here")
    assert got == [2, 4]
    assert needs == "code that is not where the task is: ModuleNotFoundError: No module named 'only_here'"


def _doubled(spark: SparkSession, place: Path, module: str) -> tuple[list[int], str]:
    pipeline = rt.Pipeline(spark, home=place / "home", small_ticks="spark").sql(TABLE.format(module=module))
    got: list[int] = []
    pipeline.sink("result", lambda batch: got.extend(row["d"] for row in batch.table().to_pylist()))
    tasks = pipeline.run_available(place / "check").engine.tasks
    assert tasks is not None
    return got, tasks.needs


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.suffix == ".parquet"}


def test_a_task_that_fails_leaves_no_files(tmp_path: Path, spark: SparkSession) -> None:
    """The driver repeats the tick; what the task has written until then is removed."""
    place = tmp_path / "case"
    filled(place)
    sent: list[set[str]] = []

    class Fails(InProcess):
        def whole(self, spark: SparkSession, packed: bytes, scans: Sequence[StreamScan], questions: Questions) -> bytes:
            report = super().whole(spark, packed, scans, questions)
            sent.append(files_below(place))
            return report if len(sent) > 1 else _failed()

    pipeline = rt.Pipeline(spark, home=place / "home", small_ticks="spark").sql(SQL.format(out=place / "out"))
    pipeline.sink("result", lambda _batch: None)
    engine: Engine = pipeline._engine(place / "check", rt.Limits(rows=6), ends=False)
    engine.tasks = Tasks(Fails())
    before = files_below(place)
    assert engine.tick() is not None
    assert len(sent) == 1
    abandoned = sent[0] - before
    assert abandoned
    assert not abandoned & files_below(place)
    assert engine.tick() is not None
    assert len(sent) == 2
    assert engine.tasks.needs == ""
    engine.stop()


def _failed() -> bytes:
    import pickle

    from rowtime.runtime.executors.work import Report

    return pickle.dumps(Report(failed="the disk of the worker is full"))


def test_tasks_are_the_default(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = [("", "driver"), ("driver", None)]
    for variable, given in [*here, ("", None), ("driver", "spark"), ("spark", None)]:
        monkeypatch.setenv("ROWTIME_SMALL_TICKS", variable)
        place = tmp_path / f"{variable}-{given}"
        pipeline = rt.Pipeline(spark, home=place / "home", small_ticks=given)
        pipeline.sql("CREATE STREAM a (v INT); SELECT STREAM v FROM a").sink("result", lambda _: None)
        engine = pipeline._engine(place / "check", rt.Limits(), ends=False)
        assert (engine.tasks is None) is ((variable, given) in here)
        engine.stop()


def test_another_place_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="R541 small_ticks is 'executor'") as refused:
        rt.Pipeline(small_ticks="executor")
    assert refused.value.problems[0].hint == "Use one of: driver, spark."
    monkeypatch.setenv("ROWTIME_SMALL_TICKS", "Spark")
    with pytest.raises(Refused, match="R541 small_ticks is 'Spark'"):
        rt.Pipeline()
