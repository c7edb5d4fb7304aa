"""Directories of files PARTITIONED BY columns, as Spark and Hive read them: exactly once, whatever dies."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.errors import Failure, Refused
from rowtime.core.partition_folders import folder_of, values_of
from rowtime.runtime import file_form
from rowtime.runtime.sinks import directory
from rowtime.runtime.skipping import skip
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.files import sweep
from tests.deaths import Died, dying
from tests.ways import in_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = dt.date(2026, 1, 2)
TEXTS = ["a/b=c%", " blanks ", "Zürich 東京", "007", "x:y?*\"'\\{[]}^#\x01\x7f", "..", None]
SQL = """
CREATE STREAM a (n BIGINT, s STRING, day DATE, yes BOOLEAN, t TINYINT) USING parquet OPTIONS (path '{at}/in');
CREATE STREAM p (n BIGINT, s STRING, day DATE, yes BOOLEAN, t TINYINT)
  USING parquet PARTITIONED BY (day, s, yes, t) OPTIONS (path '{at}/p', rowtime.column '');
CREATE STREAM c (n BIGINT NOT NULL, s STRING) USING csv PARTITIONED BY (s)
  OPTIONS (path '{at}/c', header 'true', rowtime.column '');
CREATE STREAM j (value BIGINT, `d=y` DATE) USING json PARTITIONED BY (value) OPTIONS (path '{at}/j');
CREATE PUMP to_p AS INSERT INTO p SELECT STREAM n, s, day, yes, t FROM a;
CREATE PUMP to_c AS INSERT INTO c SELECT STREAM n, s FROM a;
CREATE PUMP to_j AS INSERT INTO j SELECT STREAM n, day FROM a;
"""
TYPES = {"n": pa.int64(), "s": pa.string(), "day": pa.date32(), "yes": pa.bool_(), "t": pa.int8()}


def feed(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (folder / "in").mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(TYPES)), folder / f"in/{name}.parquet")


def pipeline(spark: SparkSession, folder: Path, sql: str) -> rt.Pipeline:
    return rt.Pipeline(spark, home=folder / "home").sql(sql.format(at=folder))


def run(spark: SparkSession, folder: Path, sql: str) -> rt.Query:
    return pipeline(spark, folder, sql).run_available(folder / "check")


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("part-*") if path.is_file())


def test_values_and_their_folders_are_distinguished() -> None:
    names = [folder_of(["k", "l=m"], [text, "1"]) for text in TEXTS]
    assert names[0] == "k=a%2Fb%3Dc%25/l%3Dm=1"
    assert [values_of(f"{name}/file") for name in names] == [[text, "1"] for text in TEXTS]


def test_staged_files_in_folders_were_swept_away(tmp_path: Path) -> None:
    for name in ("k=1/a", "k=1/b", "k=2/a", "c", "d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    sweep(tmp_path, ["k=1/b", "d"])
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["d", "k=1", "k=1/b"]


@pytest.mark.slow
def test_partitions_are_read_back_as_they_were(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"n": n, "s": text, "day": DAY if n % 3 else None, "yes": None if n == 4 else n % 2 == 0, "t": n - 3}
        for n, text in enumerate(TEXTS)
    ]
    long, odd = "é" * 126, "=" * 84
    more = [dict(rows[0], n=7), dict(rows[0], n=8, s=long), dict(rows[0], n=9, s=odd)]
    refused = ["", "__HIVE_DEFAULT_PARTITION__", f"{long}aa", f"{odd}aa", "a\0"]
    bad = [dict(rows[0], n=20 + n, s=text) for n, text in enumerate(refused)]
    feed(tmp_path, "one", rows)
    run(spark, tmp_path, SQL)
    feed(tmp_path, "two", [*more[:1], *bad, *more[1:]])
    query = run(spark, tmp_path, SQL)
    assert query.ledger["to_p"] == query.ledger["to_c"] == {"in": 15, "accepted": 10, "MALFORMED": 5}
    schema = "n BIGINT, s STRING, day DATE, yes BOOLEAN, t TINYINT"
    found = spark.read.schema(schema).parquet(str(tmp_path / "p")).orderBy("n")
    assert [row.asDict() for row in found.collect()] == [*rows, *more]
    assert all(pq.ParquetFile(file).schema_arrow.names == ["n"] for file in files(tmp_path / "p"))
    texts = spark.read.csv(str(tmp_path / "c"), header=True, schema="n BIGINT, s STRING").orderBy("n")
    assert [(row.n, row.s) for row in texts.collect()] == [(row["n"], row["s"]) for row in [*rows, *more]]
    lines = {file.parent.name: json.loads(file.read_text()) for file in files(tmp_path / "j")}
    assert lines["value=1"]["d=y"] == "2026-01-02"
    assert set(lines["value=1"]) == {"rowtime", "d=y"}
    assert spark.read.json(str(tmp_path / "j")).select("value").distinct().count() == 15
    checked = pipeline(spark, tmp_path, SQL)
    assert rt.verify(tmp_path / "check", checked).equal

    # A file in the folder of another value, and a missing one.
    [moved] = (tmp_path / "c/s=007").glob("part-*")
    moved.rename(tmp_path / "c/s=.." / moved.name)
    files(tmp_path / "j")[0].unlink()
    found_again = rt.verify(tmp_path / "check", checked)
    assert {one.name for one in found_again.outputs if one.differences} == {"to_c.sink", "to_j.sink"}


ONE = """
CREATE STREAM a (n BIGINT, s STRING, day DATE, yes BOOLEAN, t TINYINT) USING parquet OPTIONS (path '{at}/in');
CREATE STREAM p (n BIGINT, day DATE) USING parquet PARTITIONED BY (day)
  OPTIONS (path '{at}/p', rowtime.column '', maxRecordsPerFile '1000');
CREATE STREAM j (n BIGINT, day DATE) USING json PARTITIONED BY (day) OPTIONS (path '{at}/j', rowtime.column '');
CREATE PUMP p AS INSERT INTO p SELECT STREAM n, day FROM a;
CREATE PUMP j AS INSERT INTO j SELECT STREAM n, day FROM a;
"""


def on_days(numbers: range) -> list[dict[str, Any]]:
    return [{"n": n, "day": DAY + dt.timedelta(n % 3)} for n in numbers]


def rows_of(folder: Path) -> dict[str, list[int]]:
    """The rows of each folder, in the order of its files."""
    found: dict[str, list[int]] = {}
    for file in files(folder):
        whole = file.suffix == ".parquet"
        rows = pq.ParquetFile(file).read().to_pylist() if whole else map(json.loads, file.read_text().splitlines())
        found.setdefault(file.parent.name, []).extend(row["n"] for row in rows)
    return found


def expected(numbers: range) -> dict[str, list[int]]:
    return {f"day={DAY + dt.timedelta(d)}": [n for n in numbers if n % 3 == d] for d in range(3)}


@pytest.mark.slow
@pytest.mark.parametrize("point", ["after journal", "publish"])
def test_a_driver_that_died_while_it_published(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    feed(tmp_path, "one", on_days(range(6)))
    run(spark, tmp_path, ONE)
    feed(tmp_path, "two", on_days(range(6, 12)))
    engine = pipeline(spark, tmp_path, ONE)._engine(tmp_path / "check", rt.Limits(), ends=False)
    engine.hook = dying(point)
    calls, real = [], directory.move

    def move(source: Any, target: Any) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise Died
        real(source, target)

    with monkeypatch.context() as patch:
        if point == "publish":
            patch.setattr(directory, "move", move)
        with pytest.raises(Died):
            engine.tick()
    engine.stop()
    published = len(files(tmp_path / "p")) + len(files(tmp_path / "j"))
    assert published == (7 if point == "publish" else 6), "in the middle"
    [stray] = (tmp_path / "p/_rowtime/p").glob("*/")
    (stray / "day=2020-01-01").mkdir()
    (stray / "day=2020-01-01/0000000009-00000-part.parquet").touch()
    run(spark, tmp_path, ONE)
    assert rows_of(tmp_path / "p") == rows_of(tmp_path / "j") == expected(range(12))
    assert not list((tmp_path / "p/_rowtime").rglob("*.parquet"))
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, ONE)).equal
    engine = pipeline(spark, tmp_path, ONE)._engine(tmp_path / "check", rt.Limits(), ends=False)
    assert "has rows of tick 1" in engine.stages["p.sink"].sink.beyond(0, 0)  # type: ignore[attr-defined]
    engine.stop()


@pytest.mark.parametrize("driver", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_large_tick_wrote_many_files_into_each_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, driver: bool
) -> None:
    if not driver:
        in_tasks(monkeypatch, 1)
    feed(tmp_path, "one", on_days(range(7500)))
    run(spark, tmp_path, ONE)
    assert rows_of(tmp_path / "p") == rows_of(tmp_path / "j") == expected(range(7500))
    lengths = [pq.ParquetFile(file).metadata.num_rows for file in files(tmp_path / "p")]
    assert lengths == [1000, 1000, 500] * 3
    assert len(files(tmp_path / "j")) == 3
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, ONE)).equal


@pytest.mark.parametrize("driver", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_all_rows_of_a_large_tick_were_in_one_file_of_one_folder(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, driver: bool
) -> None:
    largest = 1 << 16
    monkeypatch.setattr(file_form, "LARGEST", largest)
    if not driver:
        in_tasks(monkeypatch, 1)
    feed(tmp_path, "one", [{"n": n * 7919, "day": DAY} for n in range(60_000)])
    sql = ONE.replace(", maxRecordsPerFile '1000'", "")
    run(spark, tmp_path, sql)
    assert rows_of(tmp_path / "p") == rows_of(tmp_path / "j") == {f"day={DAY}": [n * 7919 for n in range(60_000)]}
    for folder in "pj":
        sizes = [file.stat().st_size for file in files(tmp_path / folder)]
        assert len(sizes) > 3
        assert max(sizes) < 1.5 * largest, sizes
        assert min(sizes[:-1]) > largest / 2, f"none but the last is small: {sizes}"
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, sql)).equal


@pytest.mark.slow
def test_two_pumps_wrote_into_one_partitioned_directory(spark: SparkSession, tmp_path: Path) -> None:
    sql = ONE + "CREATE PUMP q AS INSERT INTO p SELECT STREAM n + 100 AS n, day FROM a WHERE n < 4;"
    for name, numbers in (("one", range(3)), ("two", range(3, 6))):
        feed(tmp_path, name, on_days(numbers))
        run(spark, tmp_path, sql)
    both = sorted(n for rows in rows_of(tmp_path / "p").values() for n in rows)
    assert both == [*range(6), *range(100, 104)]
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, sql)).equal
    for other, said in (("PARTITIONED BY (n)", "files in day="), ("", "files in day=")):
        changed = sql.replace("PARTITIONED BY (day)\n", f"{other}\n", 1)
        with pytest.raises(Refused, match=f"R597 .* has {said}"):
            rt.Pipeline(spark, home=tmp_path / "new").sql(changed.format(at=tmp_path)).run_available(
                tmp_path / "changed"
            )
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat/part-0000000000-00000-part-0a-0b.parquet").touch()
    with pytest.raises(Refused, match=r"R597 .* has part-0.* beside them"):
        rt.Pipeline(spark, home=tmp_path / "new").sql(sql.format(at=tmp_path).replace("/p'", "/flat'")).run_available(
            tmp_path / "changed"
        )
    with pytest.raises(Refused, match=r"R440 .* there are 6 files"):
        pipeline(spark, tmp_path, sql).run_available(tmp_path / "other")


def test_rows_of_a_folder_that_cannot_be_made_are_skipped(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(tmp_path, "one", on_days(range(3)))
    run(spark, tmp_path, ONE)
    feed(tmp_path, "two", on_days(range(3, 9)))

    def move(source: Any, target: Any) -> None:
        raise PermissionError(target)

    with monkeypatch.context() as patch:
        patch.setattr(directory, "move", move)
        with pytest.raises((Failure, PermissionError)):
            run(spark, tmp_path, ONE)
    for pump in "pj":
        assert skip(tmp_path / "check", pump, 1, home=tmp_path / "home").rows == 6
    feed(tmp_path, "three", on_days(range(9, 12)))
    query = run(spark, tmp_path, ONE)
    assert (
        rows_of(tmp_path / "p")
        == rows_of(tmp_path / "j")
        == {day: [n[0], n[3]] for day, n in expected(range(12)).items()}
    )
    aside = pq.ParquetFile(query.rejected("p")[0]).read(["n", "day"]).to_pylist()
    assert {row["n"]: row["day"] for row in aside} == {n: str(DAY + dt.timedelta(n % 3)) for n in range(3, 9)}
    assert rt.verify(tmp_path / "check", pipeline(spark, tmp_path, ONE)).equal


@pytest.mark.slow
def test_a_stream_over_folders_of_values_had_no_values(spark: SparkSession, tmp_path: Path) -> None:
    for kind in ("parquet", "json"):
        spark.createDataFrame([(1, "x")], "n BIGINT, s STRING").write.format(kind).partitionBy("s").save(
            str(tmp_path / kind)
        )
    sql = """
    CREATE STREAM a (n BIGINT, s STRING) USING {kind} OPTIONS (path '{{at}}/{kind}');
    CREATE STREAM b (n BIGINT) USING {kind} OPTIONS (path '{{at}}/{kind}');
    CREATE STREAM o (n BIGINT, s STRING) USING parquet OPTIONS (path '{{at}}/o{kind}', rowtime.column '');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM n, s FROM a;
    CREATE TABLE k (n BIGINT, s STRING) USING {kind} OPTIONS (path '{{at}}/{kind}');
    CREATE PUMP q AS INSERT INTO o SELECT STREAM b.n, k.s AS s FROM b JOIN k ON b.n = k.n;
    """
    for kind in ("parquet", "json"):
        rt.Pipeline(spark, home=tmp_path / f"home-{kind}").sql(sql.format(kind=kind).format(at=tmp_path)).run_available(
            tmp_path / f"check-{kind}"
        )
        rows = [pq.ParquetFile(file).read().to_pylist() for file in files(tmp_path / f"o{kind}")]
        assert rows == [[{"n": 1, "s": "x"}]], "the file of a is set aside"
        journaled: Any = Checkpoint(tmp_path / f"check-{kind}").journal.last()
        [aside] = journaled["sources"]["a"]["state"]["aside"].values()
        assert aside == [
            "R520",
            "its column s is in the name of its folder, which the stream does not name in PARTITIONED BY",
        ]
