"""Tables that are read again: each row meets the version of its rowtime, with any cut (semantics 5)."""

from __future__ import annotations

import csv
import datetime as dt
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.operators.streams.table import VERSIONS
from rowtime.operators.streams.table_versions import MARK
from rowtime.plan.program import compile_script
from rowtime.state.checkpoint import Checkpoint
from tests.ways import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(4)
START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
Row = tuple[int, str]
"""The second of a row, and its key."""
Version = tuple[tuple[str, int], ...]
FIRST: Version = (("a", 1), ("b", 2))


@dataclass
class Case:
    """A stream over files and a table in one, which a test changes between the ticks."""

    spark: SparkSession
    at: Path
    query: str = "SELECT STREAM s.ROWTIME AS at, s.k, t.v FROM s LEFT JOIN t ON t.k = s.k"
    every: str = "'0.000001' SECOND"
    ticks: int = 0
    versions: list[tuple[int, Version]] = field(default_factory=list)
    """By the oracle: the second after which a version counts, and its rows."""
    sent: list[Row] = field(default_factory=list)

    def pipeline(self) -> rt.Pipeline:
        return rt.Pipeline(self.spark, home=self.at / "home").sql(f"""
            CREATE STREAM s (k STRING) USING csv
              OPTIONS (path '{self.at}/in', header 'true', rowtime.column 'ROWTIME');
            CREATE TABLE t (k STRING, v INT) USING csv
              OPTIONS (path '{self.at}/t', header 'true') REFRESH EVERY INTERVAL {self.every};
            CREATE STREAM o (at TIMESTAMP, k STRING, v INT) USING parquet OPTIONS (path '{self.at}/out');
            CREATE PUMP p AS INSERT INTO o {self.query};""")

    def tick(self, version: Version, *rows: Row) -> rt.Query:
        """Change the table, send rows, and run; the state is checked against the oracle."""
        self._write(self.at / "t" / "rows.csv", ["k", "v"], version)
        times = [(f"{START + dt.timedelta(seconds=second):%Y-%m-%d %H:%M:%S}", k) for second, k in rows]
        self._write(self.at / "in" / f"{self.ticks:03d}.csv", ["ROWTIME", "k"], times)
        bound = self.sent[-1][0] if self.sent else -1
        if not self.versions:
            self.versions.append((-1, version))
        elif bound > self.versions[-1][0] and sorted(version) != sorted(self.versions[-1][1]):
            self.versions.append((bound, version))
        self.ticks, self.sent = self.ticks + 1, [*self.sent, *rows]
        return self.pipeline().run_available(self.at / "check")

    def met(self, second: int) -> Version:
        """The version that a row of this second meets."""
        return next(version for above, version in reversed(self.versions) if second > above)

    def written(self) -> list[tuple[int, str, int | None]]:
        files = sorted((self.at / "out").glob("*.parquet"))
        found = [row for file in files for row in pq.read_table(file).to_pylist()]
        return [(int((row["at"] - START).total_seconds()), row["k"], row["v"]) for row in found]

    def verified(self) -> None:
        """The recorded input once more, in one tick, with a deleted table."""
        (self.at / "t" / "rows.csv").unlink()
        assert all(not one.differences for one in rt.verify(self.at / "check", self.pipeline()).outputs)

    def _write(self, path: Path, names: list[str], rows: Any) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([names, *rows])


def drawn(seed: int) -> list[tuple[Version, list[Row]]]:
    """Ticks: the rows of the table, and rows in ascending order; several have the time at which a tick ends."""
    chance, second, found = random.Random(seed), 0, []
    version = FIRST
    for _ in range(5):
        if chance.random() < 0.8:
            version = tuple((k, chance.randint(0, 2)) for k in "abc" if chance.random() < 0.7)
        rows = []
        for _ in range(chance.randint(1, 5)):
            second += chance.choice([0, 0, 1, 2])
            rows.append((second, chance.choice("abc")))
        found.append((version, rows))
    return found


@pytest.mark.parametrize("seed", [2])
@pytest.mark.parametrize("parts", [0, 1, 2])
def test_each_row_joins_the_version_of_its_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, parts: int
) -> None:
    if parts:
        in_tasks(monkeypatch, parts)
    case = Case(spark, tmp_path)
    for version, rows in drawn(seed):
        case.tick(version, *rows)
    expected = [(second, k, dict(case.met(second)).get(k)) for second, k in case.sent]
    assert len(case.versions) > 2
    assert case.written() == expected
    case.verified()


@pytest.mark.slow  # many ticks
@pytest.mark.parametrize(
    ("query", "oracle"),
    [
        ("SELECT STREAM s.ROWTIME, s.k, t.v FROM s JOIN t FOR SYSTEM_TIME AS OF s.ROWTIME ON t.k = s.k", "inner"),
        ("SELECT STREAM s.ROWTIME, s.k, t.v FROM s JOIN t AS t (k, v) ON t.k = s.k", "inner"),
        ("SELECT STREAM s.ROWTIME, s.k, 0 FROM s LEFT SEMI JOIN t ON t.k = s.k", "semi"),
        ("SELECT STREAM s.ROWTIME, s.k, 0 FROM s LEFT ANTI JOIN t ON t.k = s.k", "anti"),
        ("SELECT STREAM s.ROWTIME, s.k, t.v FROM s JOIN t ON t.v > 1", "greater"),
    ],
)
def test_every_join_with_a_table_supports_versions(
    spark: SparkSession, tmp_path: Path, query: str, oracle: str
) -> None:
    case = Case(spark, tmp_path, query)
    for version, rows in drawn(3):
        case.tick(version, *rows)
    expected: list[tuple[int, str, int | None]] = []
    for second, k in case.sent:
        met = dict(case.met(second))
        alone = [(second, k, 0)]
        expected += {
            "inner": [(second, k, met[k])] if k in met else [],
            "semi": alone if k in met else [],
            "anti": alone if k not in met else [],
            "greater": [(second, k, v) for v in met.values() if v > 1],
        }[oracle]
    assert case.written() == expected
    case.verified()


@pytest.mark.slow  # many ticks
def test_a_table_is_copied_when_its_rows_have_changed_and_not_before_its_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    case = Case(spark, tmp_path)
    case.tick(FIRST, (1, "a"))
    case.tick(FIRST[::-1], (2, "a"))
    case.tick((), (3, "a"))
    case.tick(FIRST, (4, "a"))
    assert [v for _, _, v in case.written()] == [1, 1, None, 1]
    assert marks_of(case) == 3
    case.every = "'1' HOUR"
    slow = Case(spark, tmp_path / "slow", every="'1' HOUR")
    slow.tick(FIRST, (1, "a"))
    slow.tick((("a", 7),), (2, "a"))
    assert [v for _, _, v in slow.written()] == [1, 1]
    slow.versions = slow.versions[:1]
    slow.verified()


def marks_of(case: Case) -> int:
    """The number of versions in the checkpoint."""
    last = Checkpoint(case.at / "check").journal.last()
    assert last is not None
    [paths] = [paths for key, paths in last["segments"].items() if key.endswith(f"/{VERSIONS}")]
    kept = case.spark.read.parquet(*(str(case.at / "check" / path) for path, *_ in paths))
    return kept.where(f"__i = {MARK}").count()


def test_a_row_is_refused_by_what_its_own_version_makes_fail(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT STREAM s.ROWTIME, s.k, t.v FROM s JOIN t ON t.k = s.k AND 10 / t.v > 1"
    case = Case(spark, tmp_path, query)
    case.tick((("a", 0),), (1, "b"))
    case.tick((("a", 5),), (2, "a"))
    case.tick((("a", 0),), (3, "a"))
    query = case.tick((("a", 5),), (4, "a"))
    assert case.written() == [(2, "a", 5), (4, "a", 5)]
    assert query.ledger["p"]["MALFORMED"] == 1
    case.verified()


def test_versions_go_through_groups_writers_and_restarts(spark: SparkSession, tmp_path: Path) -> None:
    """Two writers, whose rows wait for each other, a view, groups and a typed sink; verified with other cuts."""
    script = f"""
        CREATE STREAM s (k STRING, n INT);
        CREATE TABLE t (k STRING, v INT) USING parquet OPTIONS (path '{tmp_path}/t')
          REFRESH EVERY INTERVAL '0.001' SECOND;
        CREATE VIEW priced AS SELECT STREAM s.n * t.v AS worth FROM s JOIN t USING (k);
        CREATE STREAM o (minute TIMESTAMP, worth BIGINT) USING parquet OPTIONS (path '{tmp_path}/out');
        CREATE PUMP p AS INSERT INTO o SELECT STREAM FLOOR(x.ROWTIME TO MINUTE) AS minute, SUM(worth)
          FROM priced AS x GROUP BY FLOOR(x.ROWTIME TO MINUTE);"""
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(script)
    chance, at = random.Random(5), {"x": 0, "y": 0}
    for number in range(5):
        rows = [("a", number), ("b", 1)]
        spark.createDataFrame(rows, "k STRING, v INT").write.mode("overwrite").parquet(str(tmp_path / "t"))
        for writer in at if number else ():
            to = rt.writer("s", home=tmp_path / "home", writer=writer)
            for _ in range(chance.randint(0, 3)):
                at[writer] += chance.randint(1, 40)
                to.insert([{"rowtime": START + dt.timedelta(seconds=at[writer]), "k": chance.choice("ab"), "n": 1}])
        made.run_available(tmp_path / "check")
    result = rt.verify(tmp_path / "check", made)
    assert sum(one.rows for one in result.outputs) > 2
    assert all(not one.differences for one in result.outputs)


def test_a_view_of_the_session_is_read_again(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    script = """CREATE STREAM s (k STRING);
        CREATE TABLE t (k STRING, v INT) USING session REFRESH EVERY INTERVAL '0.000001' SECOND;
        SELECT STREAM s.k, t.v FROM s JOIN t ON t.k = s.k;"""
    got: list[dict[str, Any]] = []
    made = rt.Pipeline(session, home=tmp_path / "home").sql(script)
    made.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    for number in (1, 2):
        rows = session.createDataFrame([("a", number)], "k STRING, v INT")
        rows.write.mode("overwrite").parquet(str(tmp_path / "t"))
        if number == 1:
            session.read.parquet(str(tmp_path / "t")).createOrReplaceTempView("t")
            made.run_available(tmp_path / "check")
            to = rt.writer("s", home=tmp_path / "home", writer="w")
        to.insert([{"rowtime": START + dt.timedelta(seconds=number), "k": "a"}])
        made.run_available(tmp_path / "check")
    assert [row["v"] for row in got] == [1, 2]


GIVEN = """CREATE STREAM s (k STRING); CREATE STREAM e (k STRING, a TIMESTAMP, b TIMESTAMP) EVENT SHAPE INTERVAL (a, b);
CREATE TABLE t (k STRING, v INT) USING parquet OPTIONS (path '/data/t') REFRESH EVERY INTERVAL '1' HOUR;
CREATE TABLE u (k STRING, v INT) USING parquet OPTIONS (path '/data/t');"""
W = "CREATE TABLE w (k STRING) USING csv OPTIONS (path 'x')"


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT STREAM k FROM s WHERE k IN (SELECT k FROM t)", "R190"),
        ("SELECT STREAM e.k FROM e JOIN t ON t.k = e.k", "R190"),
        ("SELECT STREAM s.k FROM s JOIN u FOR SYSTEM_TIME AS OF s.ROWTIME ON u.k = s.k", "R156"),
        (f"{W} REFRESH EVERY 5; SELECT STREAM k FROM s", "R101"),
        (f"{W} REFRESH EVERY INTERVAL '1' MONTH; SELECT STREAM s.k FROM s JOIN w ON w.k = s.k", "R208"),
    ],
)
def test_limits_of_tables_that_are_read_again(query: str, code: str) -> None:
    assert [problem.code for problem in compile_script(f"{GIVEN} {query}").problems] == [code]
