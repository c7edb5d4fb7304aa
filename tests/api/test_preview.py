"""A preview shows the first rows of a query and changes nothing that others see."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtime as rt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """CREATE STREAM a (v INT); CREATE STREAM b (v INT);
CREATE VIEW doubled AS SELECT STREAM v * 2 AS w FROM a;
CREATE PUMP p STARTED AS INSERT INTO b SELECT STREAM v FROM a;
INSERT INTO b (ROWTIME, v) VALUES (TIMESTAMP '2024-01-01 00:00:00', 5)"""


def files_of(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


def test_a_preview_gives_the_first_rows_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch, home = tmp_path / "scratch", tmp_path / "home"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    rt.Pipeline(spark, home=home).home.define(
        "a", rt.Pipeline().sql("CREATE STREAM a (v INT)").compile().defines[0].as_json()
    )
    with rt.writer("a", home=home) as log:
        log.insert([{"rowtime": f"2024-01-01 00:00:0{n}", "v": n} for n in range(5)])
    before, made = files_of(home), rt.Pipeline(spark, home=home).sql(SQL)
    found = made.preview("SELECT STREAM w FROM doubled", rows=3)
    assert found["w"].to_pylist() == [0, 2, 4]
    assert made.preview("SELECT STREAM w FROM doubled WHERE w > 100").column_names == found.column_names
    declared = made.preview("SELECT STREAM v FROM a WHERE v > 100").schema
    assert declared.equals(made.preview("SELECT STREAM v FROM a").schema)
    pumped = made.preview("SELECT STREAM v FROM b")["v"]  # the rows of the pump, without the row of INSERT
    assert pumped.to_pylist() == [0, 1, 2, 3, 4]
    assert files_of(home) == before
    assert made.home.definition("b") is None
    assert [path for path in scratch.iterdir() if path.name.startswith("rowtime-preview-")] == []


@pytest.mark.parametrize("text", ["CREATE STREAM c (v INT)", "SELECT STREAM v FROM a; SELECT STREAM v FROM b", ""])
def test_what_is_not_one_query_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(rt.Refused, match="R146"):
        rt.Pipeline(home=tmp_path).sql(SQL).preview(text)
