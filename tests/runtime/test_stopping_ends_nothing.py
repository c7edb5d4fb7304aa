"""Stopping ends no stream (semantics 2.6): runs over the present input follow each other; an end is explicit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.plan.program import compile_script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(2)

SQL = """
CREATE STREAM orders (at TIMESTAMP, n INT) USING json OPTIONS (path '{folder}/in', rowtime.column 'at'{options});
CREATE STREAM out (n INT) USING parquet OPTIONS (path '{folder}/out');
CREATE PUMP p AS INSERT INTO out SELECT STREAM COUNT(*) AS n FROM orders GROUP BY FLOOR(orders.ROWTIME TO MINUTE);
{more}
"""
ARRIVALS = """
CREATE STREAM orders (n INT) USING csv OPTIONS (path '{folder}/in'{options});
CREATE STREAM out (n INT) USING parquet OPTIONS (path '{folder}/out');
CREATE PUMP p AS INSERT INTO out SELECT STREAM n FROM orders;
{more}
"""


class Case:
    """A directory of files and a pipeline over it that runs several times."""

    def __init__(self, spark: SparkSession, folder: Path, *, sql: str = SQL, options: str = "", more: str = "") -> None:
        self.spark, self.folder, self.files = spark, folder, 0
        self.sql = sql.format(folder=folder, options=options, more=more)
        (folder / "in").mkdir(parents=True)

    def file(self, *minutes: int) -> None:
        """A file with a row in each of some minutes."""
        path = self.folder / "in" / f"{self.files}.json"
        path.write_text("".join(f'{{"at": "2024-01-01T10:{m:02}:00Z", "n": {m}}}\n' for m in minutes))
        self._dated(path)

    def lines(self, *values: int) -> None:
        """A file of CSV, whose rows have the time of the file."""
        path = self.folder / "in" / f"{self.files}.csv"
        path.write_text("".join(f"{value}\n" for value in values))
        self._dated(path)

    def _dated(self, path: Path) -> None:
        self.files += 1
        os.utime(path, (1_700_000_000 + self.files, 1_700_000_000 + self.files))

    def run(self, *, end: bool = False) -> rt.Query:
        """One run over the present input."""
        pipeline = rt.Pipeline(self.spark, home=self.folder / "home").sql(self.sql)
        return pipeline.run_available(self.folder / "check", end=end)

    def out(self) -> list[int]:
        """The output rows, in the order of their rowtime."""
        rows = self.spark.read.parquet(str(self.folder / "out")).orderBy("rowtime", "n").collect()
        return [row["n"] for row in rows]

    def agrees(self) -> bool:
        """True if one batch over the recorded input has the same result."""
        return rt.verify(self.folder / "check", spark=self.spark, home=self.folder / "home").equal


@pytest.mark.slow
def test_a_file_that_came_after_the_run_is_read_by_the_next_one(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(spark, tmp_path)
    case.file(1, 1, 2)
    first = case.run()
    assert case.out() == [2]  # the minute 10:02 is open
    assert first.bounds["orders"] == "2024-01-01 10:02:00"
    case.file(2, 3)
    last = case.run()
    assert case.out() == [2, 2]
    assert dict(last.ledger["orders"]) == {"in": 5, "accepted": 5}
    case.run(end=True)
    assert case.out() == [2, 2, 1]
    case.file(3, 4)
    behind = case.run()
    assert dict(behind.ledger["orders"]) == {"in": 7, "accepted": 5, "OUT_OF_ORDER": 2}
    assert case.out() == [2, 2, 1]
    assert case.agrees()


def test_rows_with_the_time_of_their_file_are_refused_behind_the_end_too(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(spark, tmp_path, sql=ARRIVALS)
    for values, end in (((1,), False), ((2, 3), True), ((4,), False)):
        case.lines(*values)
        query = case.run(end=end)
    assert case.out() == [1, 2, 3]
    assert dict(query.ledger["orders"]) == {"in": 4, "accepted": 3, "OUT_OF_ORDER": 1}
    assert case.agrees()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "more"), [(", ends 'true'", ""), ("", "ALTER STREAM orders END;")], ids=["option", "statement"]
)
def test_a_stream_that_says_so_ends_with_its_files(
    spark: SparkSession, tmp_path: Path, options: str, more: str
) -> None:
    case = Case(spark, tmp_path, options=options, more=more)
    case.file(1, 2)
    case.run()
    assert case.out() == [1, 1]
    assert case.agrees()


@pytest.mark.slow
def test_an_end_that_is_set_from_outside_takes_effect_at_the_next_run(spark: SparkSession, tmp_path: Path) -> None:
    case = Case(spark, tmp_path)
    case.file(1, 2)
    case.run()
    told = CliRunner().invoke(app, ["bound", "orders", "end", "--checkpoint", str(tmp_path / "check")])
    assert told.exit_code == 0, told.output
    case.file(2, 3)  # the input at the start of the run is read before the end
    case.run()
    assert case.out() == [1, 2, 1]
    assert case.agrees()


def _codes(sql: str) -> list[str]:
    return [problem.code for problem in compile_script(sql).problems]


READ = "; SELECT STREAM n FROM s"
FILES = "CREATE STREAM s (n INT) USING json OPTIONS (path '/in'{})" + READ


@pytest.mark.parametrize(
    ("sql", "codes"),
    [
        (FILES.format(", ends 'yes'"), ["R213"]),
        (FILES.format(", ends 'false'"), []),
        ("CREATE STREAM s (n INT) USING rate OPTIONS (ends 'true')" + READ, ["R213"]),
        (FILES.format("") + "; ALTER STREAM s SET ROWTIME BOUND TIMESTAMP '2024-01-01 00:00:00'", ["R137"]),
        (FILES.format("") + "; ALTER STREAM s END", []),
    ],
)
def test_the_option_that_ends_a_stream_is_checked(sql: str, codes: list[str]) -> None:
    assert _codes(sql) == codes


def test_an_end_of_an_unread_stream_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text("CREATE STREAM s (n INT) USING json OPTIONS (path '/in'); ALTER STREAM s END;")
    told = CliRunner().invoke(app, ["run", str(script), "--home", str(tmp_path / "home")])
    assert told.exit_code == 1
    assert "R137" in told.output
