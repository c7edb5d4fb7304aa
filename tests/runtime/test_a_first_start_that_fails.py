"""A first start that fails leaves nothing behind: the corrected script starts as if there had been no other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt
from rowtime.client.home import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MISSING = """CREATE STREAM f (n INT) USING json OPTIONS (path '{folder}/in');
CREATE STREAM s ({columns});
INSERT INTO s VALUES ({value});
CREATE STREAM o (n INT) USING parquet OPTIONS (path '{folder}/out');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM f;
CREATE PUMP q AS INSERT INTO o SELECT STREAM n FROM s;"""


def start(spark: SparkSession, folder: Path, **parts: str) -> rt.Query:
    sql = MISSING.format(**{"folder": folder, "columns": "n INT", "value": "1", **parts})
    return rt.Pipeline(spark, home=folder / "home").sql(sql).run_available(folder / "check", end=True)


def test_the_corrected_script_defines_its_streams_anew(spark: SparkSession, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.define("kept", {"columns": [], "format": None, "options": {}})
    with pytest.raises(rt.Refused, match="R206"):  # found when the rows are inserted
        start(spark, tmp_path, columns="n SMALLINT", value="'one'")
    assert home.names() == ["kept"]
    with pytest.raises(rt.Failure, match="R501"):  # found by the first tick, behind the insert: there is no folder
        start(spark, tmp_path, columns="n BIGINT", value="7")
    assert home.names() == ["kept"]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"n": 5}\n')
    query = start(spark, tmp_path)
    assert query.ledger["s"] == {"in": 1, "accepted": 1}
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted(row["n"] for row in rows) == [1, 5]
    assert home.names() == ["f", "kept", "o", "s"]


def test_what_somebody_else_has_written_stays(spark: SparkSession, tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    (tmp_path / "in").mkdir()
    pipeline = rt.Pipeline(spark, home=home.path).sql(MISSING.format(folder=tmp_path, columns="n INT", value="1"))
    engine = pipeline._engine(tmp_path / "check", rt.Limits(), ends=False)
    with rt.writer("s", home=home, writer="other") as other:
        other.insert([{"n": 2}])
    engine.stop()
    engine.never_began()
    assert home.names() == ["s"]
    assert start(spark, tmp_path).ledger["s"]["in"] == 2
