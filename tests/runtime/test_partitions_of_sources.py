"""Files in folders by value, chosen by globs: the rows that a stream reads, also after a crash, and verify."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.partition_folders import folder_of
from rowtime.state.checkpoint import Checkpoint
from tests.deaths import Died, dying

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = """
CREATE STREAM clicks (day DATE, page STRING, n INT, land STRING) USING {kind} PARTITIONED BY (day, land)
  OPTIONS (path '{path}'{more});
CREATE VIEW few AS SELECT STREAM day, land, page, n * 2 AS n FROM clicks WHERE n > 1;
CREATE STREAM o (day DATE, land VARCHAR(2), page STRING, n INT CHECK (n < 100)) USING json
  OPTIONS (path '{at}/o', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM day, land, page, n FROM few;
"""
Row = tuple[str | None, str | None, str, int]
ROWS: list[list[Row]] = [
    [("2026-01-02", "DE", "a", 1), ("2026-01-02", "DE", "b", 2)],
    [("2026-01-03", None, "c", 3), ("2026-01-03", None, "d", 4)],
    [("2026-01-02", "a/b=c%", "e", 5)],
    [("2026-01-04", "DE", "f", 60), ("2026-01-04", "DE", "g", 7)],
]


def write(at: Path, name: str, rows: list[Row], kind: str, age: int, folder: str | None = None) -> Path:
    """Rows of one folder; the file has the columns that the folder does not give."""
    place = at / (folder if folder is not None else folder_of(["day", "land"], rows[0][:2]))
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}.{kind}"
    if kind == "parquet":
        pq.write_table(
            pa.table({"page": [row[2] for row in rows], "n": pa.array([row[3] for row in rows], "int32")}), path
        )
    elif kind == "csv":
        path.write_text("".join(f"{page},{n}\n" for *_, page, n in rows))
    else:
        path.write_text("".join(json.dumps({"page": page, "n": n}) + "\n" for *_, page, n in rows))
    os.utime(path, (1_700_000_000 + age, 1_700_000_000 + age))
    return path


def expected(files: list[list[Row]]) -> list[Row]:
    """The oracle: the rows that the typed target accepts, in their order."""
    rows = [(day, land, page, n * 2) for file in files for day, land, page, n in file if n > 1]
    return [row for row in rows if row[3] < 100 and (row[1] is None or len(row[1]) <= 2)]


def pipeline(spark: SparkSession, at: Path, kind: str, path: Path | None = None, more: str = "") -> rt.Pipeline:
    sql = SQL.format(kind=kind, path=path or at / "in", at=at, more=more)
    return rt.Pipeline(spark, home=at / "home").sql(sql)


def run(spark: SparkSession, at: Path, kind: str, path: Path | None = None, more: str = "") -> rt.Query:
    return pipeline(spark, at, kind, path, more).run_available(at / "check")


def written(at: Path) -> list[tuple[Any, ...]]:
    lines = [json.loads(line) for file in sorted((at / "o").glob("part-*")) for line in file.read_text().splitlines()]
    return [tuple(line.get(name) for name in ("day", "land", "page", "n")) for line in lines]


def aside(at: Path) -> dict[str, list[str]]:
    journaled: Any = Checkpoint(at / "check").journal.last()
    found = journaled["sources"]["clicks"]["state"].get("aside", {})
    return {Path(path).name: said for path, said in found.items()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_the_names_of_folders_give_columns_across_restarts(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    for number, rows in enumerate(ROWS[:2]):
        write(tmp_path / "in", f"f{number}", rows, kind, number)
    run(spark, tmp_path, kind)
    assert written(tmp_path) == expected(ROWS[:2])
    for number, rows in enumerate(ROWS[2:], 2):
        write(tmp_path / "in", f"f{number}", rows, kind, number)
    query = run(spark, tmp_path, kind)
    assert written(tmp_path) == expected(ROWS)
    assert query.ledger["p"] == {"in": 6, "accepted": 4, "MALFORMED": 2}
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, kind)).equal


@pytest.mark.slow
def test_a_crash_between_two_ticks_repeats_no_folder_and_loses_none(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, rows in enumerate(ROWS):
        write(tmp_path / "in", f"f{number}", rows, "csv", number)
    for point in ("before journal", "after journal"):
        engine = pipeline(spark, tmp_path, "csv")._engine(tmp_path / "check", rt.Limits(files=1), ends=False)
        monkeypatch.setattr(engine, "hook", dying(point))
        with pytest.raises(Died):
            engine.tick()
        engine.stop()
    run(spark, tmp_path, "csv")
    assert written(tmp_path) == expected(ROWS)
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, "csv")).equal


def test_a_file_whose_folders_say_less_is_set_aside(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "good", ROWS[0], "csv", 0)
    write(tmp_path / "in", "nowhere", ROWS[1], "csv", 1, "")
    wrong = write(tmp_path / "in", "wrong", ROWS[1], "csv", 2, "day=soon/land=DE")
    run(spark, tmp_path, "csv")
    assert written(tmp_path) == expected(ROWS[:1])
    assert aside(tmp_path) == {
        "nowhere.csv": ["R520", "it is not in a folder day=…, so the column day has no value"],
        "wrong.csv": ["R520", "its folder day=soon is not a value of type DATE"],
    }
    folder = tmp_path / "in" / folder_of(["day", "land"], ROWS[1][0][:2])
    folder.mkdir(parents=True)
    wrong.rename(folder / "right.csv")
    run(spark, tmp_path, "csv")
    assert written(tmp_path) == expected(ROWS[:2])


@pytest.mark.slow
def test_rows_that_a_pump_writes_into_folders_are_read_back(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", "f0", ROWS[0], "csv", 0)
    write(tmp_path / "in", "f1", ROWS[2], "csv", 1)
    more = f"""CREATE STREAM split (page STRING, n INT, land STRING) USING parquet PARTITIONED BY (land)
      OPTIONS (path '{tmp_path}/split', rowtime.column '');
    CREATE PUMP s AS INSERT INTO split SELECT STREAM page, n, land FROM clicks;
    """
    sql = SQL.format(kind="csv", path=tmp_path / "in", at=tmp_path, more="") + more
    rt.Pipeline(spark, home=tmp_path / "home").sql(sql).run_available(tmp_path / "check")
    back = f"""CREATE STREAM again (page STRING, n INT, land STRING) USING csv OPTIONS (path '{tmp_path}/again');
    CREATE PUMP b AS INSERT INTO again SELECT STREAM page, n, land FROM split;"""
    rt.Pipeline(spark, home=tmp_path / "home").sql(back).run_available(tmp_path / "check back")
    lines = [line.split(",")[1:] for f in (tmp_path / "again").glob("part-*") for line in f.read_text().splitlines()]
    assert sorted(lines) == [["a", "1", "DE"], ["b", "2", "DE"], ["e", "5", "a/b=c%"]]


def test_a_glob_chooses_folders_and_files(spark: SparkSession, tmp_path: Path) -> None:
    """``*`` matches within a name; everything below a chosen folder belongs to it; other folders are not read."""
    write(tmp_path / "in" / "web-1", "f0", ROWS[0], "csv", 0)
    write(tmp_path / "in" / "web-2" / "deep", "f1", ROWS[1], "csv", 1)
    write(tmp_path / "in" / "app-1", "f2", ROWS[2], "csv", 2)
    (tmp_path / "in" / "app-1").chmod(0o000)
    write(tmp_path / "in" / "ios-1", "f3", ROWS[3], "csv", 3)
    try:
        run(spark, tmp_path, "csv", tmp_path / "in" / "{web,ios}-[0-9]")
    finally:
        (tmp_path / "in" / "app-1").chmod(0o755)
    assert written(tmp_path) == expected([ROWS[0], ROWS[1], ROWS[3]])
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, "csv", tmp_path / "in" / "{web,ios}-[0-9]")).equal


def test_a_folder_whose_name_looks_like_a_glob_is_that_folder(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in[1]", "f0", ROWS[0], "csv", 0)
    write(tmp_path / "in1", "f1", ROWS[1], "csv", 1)
    run(spark, tmp_path, "csv", tmp_path / "in[1]")
    assert written(tmp_path) == expected(ROWS[:1])


def test_files_that_are_still_being_written_are_not_read(spark: SparkSession, tmp_path: Path) -> None:
    at = tmp_path / "in"
    write(at, "good", ROWS[0], "csv", 0)
    unfinished = write(at, "half", ROWS[1], "csv", 1)
    unfinished = unfinished.rename(unfinished.with_suffix(".csv.tmp"))
    for name in ("_SUCCESS", ".hidden.csv"):
        (unfinished.parent / name).write_text("x,9\n")
    run(spark, tmp_path, "csv")
    assert (written(tmp_path), aside(tmp_path)) == (expected(ROWS[:1]), {})
    unfinished.rename(unfinished.with_suffix(""))
    run(spark, tmp_path, "csv")
    assert written(tmp_path) == expected(ROWS[:2])


def test_a_stream_may_read_files_that_are_still_being_written(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path / "in", "good", ROWS[0], "csv", 0)
    path.rename(path.with_suffix(".tmp"))
    run(spark, tmp_path, "csv", more=", pathGlobFilter '*.tmp'")
    assert written(tmp_path) == expected(ROWS[:1])
