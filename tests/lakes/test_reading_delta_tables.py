"""Delta tables as sources: the rows of each version once and in order; only appended rows are accepted."""

from __future__ import annotations

import json
import re
import shutil
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.cli.status import status_of
from rowtime.core.errors import Failure, Refused
from rowtime.runtime.sources.delta_history import DeltaHistory
from rowtime.runtime.sources.lake_files import TableFiles
from rowtime.runtime.sources.lakes import static_rows
from tests.deaths import Died, dying
from tests.lakes.foreign_tables import change_log, readers, vector_of_the_first_row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START = datetime(2024, 1, 1, tzinfo=UTC)
SQL = """CREATE STREAM clicks (n BIGINT, day STRING, at TIMESTAMP)
  USING delta OPTIONS (path '{folder}/in', startingVersion '0');
CREATE STREAM o (day STRING, total BIGINT, n BIGINT) USING delta OPTIONS (path '{folder}/{out}');
CREATE VIEW sorted AS SELECT STREAM at AS ROWTIME, n, day FROM clicks ORDER BY at WITHIN INTERVAL '5' MINUTE;
CREATE PUMP p AS INSERT INTO o SELECT STREAM day, SUM(n) AS total, COUNT(*) AS n
  FROM sorted GROUP BY FLOOR(sorted.ROWTIME TO MINUTE), day;"""
PLAIN = """CREATE STREAM clicks (n BIGINT{more}) USING delta OPTIONS (path '{folder}/in'{options});
CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '{folder}/out', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM clicks{now};"""


def append(folder: Path, numbers: range, **how: Any) -> None:
    """A version with one file for each of two days."""
    at = [START + timedelta(seconds=10 * n + 15 * (n % 2)) for n in numbers]
    rows = pa.table(
        {"n": [*numbers], "day": [f"d {n % 2}/ä" for n in numbers], "at": pa.array(at, pa.timestamp("us", "UTC"))}
    )
    write_deltalake(str(folder / "in"), rows, mode="append", partition_by=["day"], **how)


def table(folder: Path, name: str = "in") -> DeltaTable:
    return DeltaTable(str(folder / name))


def numbers(folder: Path) -> list[int]:
    return table(folder, "out").to_pyarrow_table()["n"].to_pylist()


def pipeline(spark: SparkSession, folder: Path, sql: str, **given: str) -> rt.Pipeline:
    given = {"options": "", "now": "", "more": "", **given}
    home = folder / f"home of {given.get('out', 'out')}"
    return rt.Pipeline(spark, home=home).sql(sql.format(folder=folder, **given))


def run(spark: SparkSession, folder: Path, sql: str = PLAIN, check: str = "check", **given: Any) -> rt.Query:
    files, end = given.pop("files", None), given.pop("end", False)
    return pipeline(spark, folder, sql, **given).run_available(folder / check, limits=rt.Limits(files=files), end=end)


def refusal(spark: SparkSession, folder: Path, **given: Any) -> str:
    with pytest.raises((Refused, Failure)) as raised:
        run(spark, folder, **given)
    return str(raised.value)


def results(folder: Path, out: str) -> list[tuple[Any, ...]]:
    rows = table(folder, out).to_pyarrow_table().to_pylist()
    return sorted((row["rowtime"], row["day"], row["total"], row["n"]) for row in rows)


@pytest.mark.slow
def test_a_stream_over_a_table_is_the_same_in_any_cut_across_crashes_and_foreign_writers(
    spark: SparkSession, tmp_path: Path
) -> None:
    append(tmp_path, range(8))
    append(tmp_path, range(8, 12))
    run(spark, tmp_path, SQL, out="out", files=1)
    table(tmp_path).optimize.compact()
    append(tmp_path, range(12, 20))
    for point in ("before journal", "after journal"):
        engine = pipeline(spark, tmp_path, SQL, out="out")._engine(tmp_path / "check", rt.Limits(files=1), ends=False)
        engine.hook = dying(point)
        with pytest.raises(Died):
            engine.tick()
        engine.stop()
    append(tmp_path, range(20, 30))
    run(spark, tmp_path, SQL, out="out", files=2, end=True)
    run(spark, tmp_path, SQL, "whole", out="other", end=True)
    found = results(tmp_path, "out")
    assert found == results(tmp_path, "other")
    assert sum(total for *_, total, _ in found) == sum(range(30))
    assert {day for _, day, *_ in found} == {"d 0/ä", "d 1/ä"}
    again = verify(tmp_path / "check", spark=spark, home=tmp_path / "home of out")
    assert again.equal, again


def test_the_first_start_reads_the_table_as_it_is_and_then_what_is_appended(
    spark: SparkSession, tmp_path: Path
) -> None:
    for first in (0, 4, 8):
        append(tmp_path, range(first, first + 4))
    table(tmp_path).delete("n = 2")
    table(tmp_path).optimize.compact()
    run(spark, tmp_path)
    assert sorted(numbers(tmp_path)) == [0, 1, *range(3, 12)]
    append(tmp_path, range(12, 14))
    table(tmp_path).optimize.compact()
    assert table(tmp_path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    append(tmp_path, range(14, 16))
    with pytest.raises(Refused, match=r"R576 .*of version 5 is gone"):
        run(spark, tmp_path)
    assert len(numbers(tmp_path)) == 11, "nothing behind the gap is read"


@pytest.mark.slow
def test_the_unread_rest_is_reported_in_bytes_or_in_versions(spark: SparkSession, tmp_path: Path) -> None:
    for first in (0, 4, 8, 12):
        append(tmp_path, range(first, first + 4))
    sizes = [add["size_bytes"] for add in pa.table(table(tmp_path).get_add_actions()).to_pylist()]

    def told(check: str, limits: rt.Limits, **given: str) -> list[tuple[str, int, int]]:
        found: list[Any] = []
        made = pipeline(spark, tmp_path, f"{PLAIN.partition(';')[0]}; SELECT STREAM n FROM clicks", out=check, **given)
        made.sink("result", lambda _: None).run_available(tmp_path / check, limits=limits, listener=found.append)
        backlogs = [source["backlog"] for progress in found for source in progress["sources"]]
        return [(one["unit"], one["taken"], one["left"]) for one in backlogs]

    assert told("whole", rt.Limits()) == [("bytes", sum(sizes), 0)]
    few = told("few", rt.Limits(files=3))
    assert [unit for unit, *_ in few] == ["bytes"] * 3, "the first look finds all files of the table"
    assert sum(taken for _, taken, _ in few) == sum(sizes)
    assert [left for *_, left in few] == [sum(sizes) - few[0][1], few[2][1], 0]
    by_version = told("versions", rt.Limits(files=3), options=", startingVersion '0'")
    assert by_version[0] == ("versions", 1, 3), "one whole version of four, and a half"
    assert (by_version[-1][0], by_version[-1][2]) == ("bytes", 0)
    assert status_of(tmp_path / "versions")["streams"][0]["left"] == {"amount": 0, "unit": "bytes"}


def test_rows_that_are_already_there_come_in_the_order_of_their_versions(tmp_path: Path) -> None:
    for n, day in enumerate("aabb"):
        rows = pa.table({"n": [n], "day": [day]})
        write_deltalake(str(tmp_path / "in"), rows, mode="append", partition_by=["day"])
    table(tmp_path).optimize.compact(partition_filters=[("day", "=", "a")])
    assert found_in(tmp_path) == [{0, 1}, {2}, {3}], "a file that was compacted last has the oldest rows"
    table(tmp_path).create_checkpoint()
    for version in range(4):
        (tmp_path / "in" / "_delta_log" / f"{version:020}.json").unlink()
    assert found_in(tmp_path) == [{2}, {3}, {0, 1}], "without the log, the times of files tell"


def found_in(folder: Path) -> list[set[int]]:
    history = DeltaHistory(folder / "in")
    look = history.look()
    assert look is not None
    return [set(pq.read_table(file.path)["n"].to_pylist()) for file in history.whole(look.place)]


def test_from_now_and_a_starting_version(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, range(4))
    append(tmp_path, range(4, 8))
    table(tmp_path).delete("n = 0")
    given = {"now": " FROM NOW"}
    run(spark, tmp_path, **given)
    append(tmp_path, range(8, 10))
    run(spark, tmp_path, **given)
    run(spark, tmp_path, **given)
    assert sorted(numbers(tmp_path)) == [8, 9]
    for number, (start, expected) in enumerate({"1": [4, 5, 6, 7, 8, 9], "latest": []}.items()):
        shutil.rmtree(tmp_path / "out")
        given = {"options": f", startingVersion '{start}', skipChangeCommits 'true'", "out": str(number)}
        run(spark, tmp_path, check=f"check {start}", **given)
        assert (sorted(numbers(tmp_path)) if expected else []) == expected, start
    shutil.rmtree(tmp_path / "out")
    assert "R578" in refusal(spark, tmp_path, check="other", options=", startingVersion '4'", out="other")


@pytest.mark.slow
def test_a_version_that_changes_rows_is_refused_unless_it_is_to_be_skipped(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, range(4))
    run(spark, tmp_path)
    append(tmp_path, range(4, 6))
    table(tmp_path).update({"n": "n + 100"}, predicate="n = 1")
    append(tmp_path, range(6, 8))
    said = refusal(spark, tmp_path)
    assert "R574" in said, said
    assert "the stream clicks: version 2 UPDATE removed or replaced 1 files" in said, said
    assert "skipChangeCommits 'true'" in said, said
    assert sorted(numbers(tmp_path)) == list(range(6)), "what came before it has been read"
    run(spark, tmp_path, options=", skipChangeCommits 'true'")
    assert sorted(numbers(tmp_path)) == list(range(8))


def test_restored_rows_are_read_again_if_their_removal_was_skipped(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, range(2))
    append(tmp_path, range(2, 4))
    table(tmp_path).restore(0)
    table(tmp_path).restore(1)
    run(spark, tmp_path, options=", startingVersion '0', skipChangeCommits 'true'")
    assert sorted(numbers(tmp_path)) == [0, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (", startingVersio '3'", "R540", "Did you mean startingVersion?"),
        (", startingVersion 'first'", "R541", "a version, such as 12, or latest"),
        (", maxFilesPerTrigger '3'", "R542", "as its limits say"),
        (", ignoreChanges 'true'", "R542", "skipChangeCommits"),
        (", skipChangeCommits 'yes'", "R541", "true or false"),
    ],
)
def test_options_of_a_table_that_is_read_are_known(tmp_path: Path, options: str, code: str, said: str) -> None:
    with pytest.raises(Refused, match=rf"(?s){code}.*{re.escape(said)}"):
        rt.Pipeline(home=tmp_path / "home").sql(PLAIN.format(folder="/x", options=options, more="", now="")).compile()


def test_a_table_is_not_read_in_the_script_whose_pump_fills_it(tmp_path: Path) -> None:
    sql = """CREATE STREAM a (n INT); CREATE STREAM t (n INT) USING delta OPTIONS (path '/t');
    INSERT INTO t SELECT STREAM n FROM a; SELECT STREAM n FROM t;"""
    with pytest.raises(Refused, match=r"R504 a delta stream cannot be read in the script whose pump fills it"):
        rt.Pipeline(home=tmp_path / "home").sql(sql).compile()


@pytest.mark.parametrize(("what", "code"), [("anew", "R576"), ("removed", "R576"), ("log", "R576"), ("column", "R577")])
def test_a_table_that_differs_from_what_was_read_is_refused(
    spark: SparkSession, tmp_path: Path, what: str, code: str
) -> None:
    append(tmp_path, range(2))
    run(spark, tmp_path)
    if what in ("anew", "removed"):
        shutil.rmtree(tmp_path / "in")
    if what == "column":
        other = pa.table({"m": [1], "day": ["x"]})
        write_deltalake(str(tmp_path / "in"), other, mode="overwrite", schema_mode="overwrite")
    for first in (2, 4) if what in ("anew", "log") else ():
        append(tmp_path, range(first, first + 2))
    if what == "log":
        table(tmp_path).create_checkpoint()
        (tmp_path / "in" / "_delta_log" / f"{1:020}.json").unlink()
    said = refusal(spark, tmp_path)
    assert code in said, said
    assert sorted(numbers(tmp_path)) == [0, 1]


@pytest.mark.parametrize("more", [0, 1, 2, 4])
def test_rows_of_a_table_that_was_restored_and_written_past_the_reader_were_skipped(
    spark: SparkSession, tmp_path: Path, more: int
) -> None:
    append(tmp_path, range(2))
    shutil.copytree(tmp_path / "in", tmp_path / "copy")
    append(tmp_path, range(2, 4))
    append(tmp_path, range(4, 6))
    run(spark, tmp_path)
    shutil.rmtree(tmp_path / "in")
    shutil.copytree(tmp_path / "copy", tmp_path / "in")
    for number in range(more):
        append(tmp_path, range(100 + number, 101 + number))
    for _ in range(2):
        assert "R576" in refusal(spark, tmp_path)
    assert sorted(numbers(tmp_path)) == [*range(6)]


def test_old_entries_of_a_log_may_be_removed(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, range(2))
    append(tmp_path, range(2, 4))
    run(spark, tmp_path)
    append(tmp_path, range(4, 6))
    table(tmp_path).create_checkpoint()
    (tmp_path / "in" / "_delta_log" / f"{1:020}.json").unlink()
    run(spark, tmp_path)
    assert sorted(numbers(tmp_path)) == [*range(6)]


def test_columns_of_other_types_and_missing_tables_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    assert "R501" in refusal(spark, tmp_path)
    append(tmp_path, range(2))
    for number, (more, code) in enumerate({", day INT": "R577", ", x INT": "R577"}.items()):
        said = refusal(spark, tmp_path, more=more, check=str(number), out=str(number))
        assert code in said, said


def test_ordered_output_of_a_pump_is_read_with_its_rowtimes(spark: SparkSession, tmp_path: Path) -> None:
    writes = """CREATE STREAM a (n BIGINT);
    CREATE STREAM t (n BIGINT) USING delta OPTIONS (path '{folder}/in', ordered 'true');
    CREATE PUMP p AS INSERT INTO t SELECT STREAM n FROM a;"""
    reads = """CREATE STREAM u (n BIGINT) USING delta OPTIONS (path '{folder}/in', rowtime.column 'rowtime');
    CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '{folder}/out');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM u;"""
    home = tmp_path / "home of writer"
    made = pipeline(spark, tmp_path, writes, out="writer")
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)
    for first in (0, 50):
        for name in ("one", "two"):
            with rt.writer("a", writer=name, home=home) as log:
                at = [(START + timedelta(seconds=n), n) for n in range(first, first + 50) if n % 2 == (name == "one")]
                log.insert([{"n": n, "rowtime": time} for time, n in at])
        run(spark, tmp_path, writes, "writer", out="writer")
        query = run(spark, tmp_path, reads)
    assert query.ledger["u"] == {"in": 99, "accepted": 99}, "the last row waits for the other writer"
    rows = table(tmp_path, "out").to_pyarrow_table().to_pylist()
    assert {row["rowtime"]: row["n"] for row in rows} == {START + timedelta(seconds=n): n for n in range(99)}


JOIN = """CREATE STREAM a (n BIGINT);
CREATE TABLE t (n INT, day STRING) USING delta OPTIONS (path '{folder}/in'{options});
CREATE STREAM o (n BIGINT, day STRING) USING delta OPTIONS (path '{folder}/out', rowtime.column '');
CREATE PUMP p AS INSERT INTO o SELECT STREAM a.n, t.day FROM a LEFT JOIN t ON a.n = t.n;"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "known"),
    [("", [0, 2, 3, 4, 5]), (", versionAsOf '0'", [0, 1, 2])],
    ids=("as it is", "version 0"),
)
def test_a_static_table_is_that_of_its_version_or_of_the_first_start(
    spark: SparkSession, tmp_path: Path, options: str, known: list[int]
) -> None:
    append(tmp_path, range(3))
    append(tmp_path, range(3, 6))
    table(tmp_path).delete("n = 1")
    home = tmp_path / "home of out"
    made = pipeline(spark, tmp_path, JOIN, options=options)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)
    for first in (0, 4):
        with rt.writer("a", home=home) as log:
            log.insert([{"n": n, "rowtime": START + timedelta(seconds=n)} for n in range(first, first + 4)])
        run(spark, tmp_path, JOIN, options=options)
        append(tmp_path, range(6, 8))
    rows = table(tmp_path, "out").to_pyarrow_table().to_pylist()
    assert {row["n"]: row["day"] for row in rows} == {n: f"d {n % 2}/ä" if n in known else None for n in range(8)}
    again = verify(tmp_path / "check", spark=spark, home=home)
    assert again.equal, again


def test_a_static_table_of_a_missing_version_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    append(tmp_path, range(3))
    with pytest.raises(Refused, match=r"R578 .*has no version 99"):
        static_rows(spark, "t", ("delta", (("path", str(tmp_path / "in")), ("versionAsOf", "99"))), {"n": "BIGINT"})


def given_to(folder: Path, kind: str, **changes: Any) -> DeltaHistory:
    """A table with other values in the log's actions of a ``kind``."""
    write_deltalake(str(folder), pa.table({"n": [1, 2]}))
    change_log(folder, kind, changes)
    return DeltaHistory(folder)


def test_unsupported_reader_features_are_refused(tmp_path: Path) -> None:
    for name in ("fancy", "typeWidening", "variantType"):
        with pytest.raises(Refused, match=f"R575 .*{name}"):
            given_to(tmp_path / name, "protocol", **readers(name)).look()
    column = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "x"}
    schema = {"type": "struct", "fields": [{"name": "n", "type": "long", "nullable": True, "metadata": column}]}
    given_to(tmp_path / "mapped", "metaData", schemaString=json.dumps(schema))
    shutil.copytree(tmp_path / "mapped", tmp_path / "plain")
    entry = tmp_path / "mapped" / "_delta_log" / f"{0:020}.json"
    text = entry.read_text().replace('"configuration": {}', '"configuration": {"delta.columnMapping.mode": "name"}')
    entry.write_text(
        text.replace('"minReaderVersion": 1, "minWriterVersion": 2', '"minReaderVersion": 2, "minWriterVersion": 5')
    )
    with pytest.raises(Refused, match=r"R575 .*maps the names of its columns"):
        DeltaHistory(tmp_path / "mapped").look()
    # Features that a table declares but does not use have no effect.
    history = given_to(tmp_path / "new", "protocol", **readers("deletionVectors", "v2Checkpoint"))
    look = history.look()
    assert look is not None
    assert [file.path for file in history.whole(look.place)] == [file.path for file in next(history.since(-1)).files]


def test_a_table_with_deletion_vectors_is_refused(tmp_path: Path) -> None:
    given_to(tmp_path / "in", "add", **vector_of_the_first_row())
    change_log(tmp_path / "in", "protocol", readers("deletionVectors"))
    history = DeltaHistory(tmp_path / "in")
    look = history.look()
    assert look is not None
    with pytest.raises(Refused, match=r"R575 .*has deletion vectors"):
        history.whole(look.place)
    with pytest.raises(Refused, match=r"R575 .*has a deletion vector in version 0"):
        next(history.since(-1))


@pytest.mark.slow
def test_partitions_of_all_types_are_read_from_the_log(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"n": n, "day": None if n == 7 else date(1500, 1, 1) + timedelta(days=n), "flag": n % 2 == 0, "k": n}
        for n in range(70)
    ]
    for nth, some in enumerate((rows[:10], rows)):
        folder = tmp_path / str(nth)
        write_deltalake(str(folder), pa.Table.from_pylist(some), partition_by=["day", "flag", "k"])
        history = DeltaHistory(folder)
        look = history.look()
        assert look is not None
        reader = TableFiles([("n", "BIGINT"), ("day", "DATE"), ("flag", "BOOLEAN"), ("K", "INT")])
        for files in (history.whole(look.place), next(history.since(-1)).files):
            assert len(files) == len(some)
            part, names = reader.slice_of(0, files), ["n", "day", "flag", "K"]
            given = reader.given(part)
            assert given is not None
            theirs, ours = reader.read(spark, part).select(names).toArrow(), pa.concat_tables(given[1]).select(names)
            for found in (theirs, ours):
                assert found.sort_by("n").to_pylist() == [
                    {"n": row["n"], "day": row["day"], "flag": row["flag"], "K": row["k"]} for row in some
                ]


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append(tmp_path, range(2))
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(Refused, match=r"R560 .*deltalake"):
        DeltaHistory(tmp_path / "in").look()
