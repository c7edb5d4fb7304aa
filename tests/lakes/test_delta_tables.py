"""Delta tables as targets of pumps: each row is there once, whatever dies; a table that does not fit is refused."""

from __future__ import annotations

import shutil
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.core.errors import Failure, Refused, RowtimeError
from rowtime.runtime.sinks.delta_log import DeltaLog
from rowtime.state.checkpoint import Checkpoint
from tests.deaths import Died
from tests.lakes import deaths
from tests.landings import HOURLY, batch, landings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.runtime.sinks.lake import Ready

SQL = """CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (n BIGINT, day DATE) USING delta PARTITIONED BY (day) OPTIONS (path '{folder}/out');
CREATE PUMP even AS INSERT INTO o SELECT STREAM n, day FROM a WHERE n % 2 = 0;
CREATE PUMP odd AS INSERT INTO o SELECT STREAM n, day FROM a WHERE n % 2 = 1;"""
ONE = """CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (n BIGINT) USING delta OPTIONS (path '{folder}/out');
CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;"""
MINUTE = 60_000_000


def define(folder: Path, sql: str) -> None:
    made = rt.Pipeline(home=folder / "home").sql(sql.format(folder=folder))
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)


def send(folder: Path, numbers: range) -> None:
    with rt.writer("a", home=folder / "home") as log:
        log.insert([{"n": n, "day": f"2024-01-0{1 + n % 3}", "rowtime": n * MINUTE} for n in numbers])


def run(spark: SparkSession, folder: Path, sql: str, check: str = "check", **how: Any) -> rt.Query:
    made = rt.Pipeline(spark, home=folder / "home").sql(sql.format(folder=folder))
    return made.run_available(folder / check, **how)


def table(folder: Path) -> DeltaTable:
    return DeltaTable(str(folder / "out"))


def numbers(folder: Path) -> list[int]:
    return sorted(table(folder).to_pyarrow_table()["n"].to_pylist())


def dies_in(spark: SparkSession, folder: Path, sql: str, point: str, patch: pytest.MonkeyPatch) -> None:
    made = rt.Pipeline(spark, home=folder / "home").sql(sql.format(folder=folder))
    deaths.dies_in(made._engine(folder / "check", rt.Limits(), ends=False), DeltaLog, point, patch)


def test_a_driver_that_dies_at_any_point_loses_and_repeats_no_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, SQL)
    points = ("before journal", "after journal", "files in place", "first commit", "second commit", "after output")
    for at, point in enumerate(points):
        send(tmp_path, range(at * 10, at * 10 + 10))
        dies_in(spark, tmp_path, SQL, point, monkeypatch)
        committed = {"first commit": 5, "second commit": 10, "after output": 10}.get(point, 0)
        found = numbers(tmp_path) if (tmp_path / "out" / "_delta_log").exists() else []
        assert len(found) == at * 10 + committed, point
        engine = rt.Pipeline(spark, home=tmp_path / "home").sql(SQL.format(folder=tmp_path))
        engine.run_available(tmp_path / "check")
        assert numbers(tmp_path) == list(range(at * 10 + 10)), point
    assert set(table(tmp_path).metadata().partition_columns) == {"day"}
    days = table(tmp_path).to_pyarrow_table(filters=[("day", "=", date(2024, 1, 2))])
    assert sorted(days["n"].to_pylist()) == [n for n in range(60) if n % 3 == 1]
    assert not list((tmp_path / "out" / "_rowtime").rglob("*.parquet")), "nothing is left staged"
    found = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert [(one.rows, one.how) for one in found.outputs if one.kind == "delta"] == [(30, "as a set")] * 2
    assert found.equal, found
    log = table(tmp_path).history()
    assert log[0]["rowtime.tick"] == log[1]["rowtime.tick"], "each pump has a version a tick"
    # A version that was tampered with is found.
    gone = next(path for path in (tmp_path / "out").glob("part-*"))
    text = sorted((tmp_path / "out" / "_delta_log").glob("*.json"))
    for entry in text:
        lines = [line for line in entry.read_text().splitlines() if gone.name not in line]
        entry.write_text("\n".join(lines) + "\n")
    assert not verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal


def test_a_table_whose_folders_have_names_that_urls_encode_is_verified(spark: SparkSession, tmp_path: Path) -> None:
    folder, sql = tmp_path / "a b+ü", SQL.replace("day DATE", "day STRING")
    define(folder, sql)
    with rt.writer("a", home=folder / "home") as log:
        log.insert([{"n": n, "day": ("plain", "in März", "50%/a:b")[n % 3], "rowtime": 0} for n in range(10)])
    run(spark, folder, sql)
    assert numbers(folder) == [*range(10)]
    found = verify(folder / "check", spark=spark, home=folder / "home")
    assert [(one.rows, one.how) for one in found.outputs if one.kind == "delta"] == [(5, "as a set")] * 2
    assert found.equal, found


def test_foreign_writers_come_between_and_optimize(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, ONE)
    send(tmp_path, range(5))
    run(spark, tmp_path, ONE)
    real, left = DeltaLog.commit, [3]

    def commit(self: DeltaLog, ready: Ready) -> None:
        if left[0]:
            left[0] -= 1
            rows = pa.table({"n": pa.array([1000 + left[0]], pa.int64())})
            write_deltalake(str(tmp_path / "out"), rows, mode="append", schema_mode="merge")
            table(tmp_path).optimize.compact()
        real(self, ready)

    monkeypatch.setattr(DeltaLog, "commit", commit)
    for at in (5, 10):
        send(tmp_path, range(at, at + 5))
        run(spark, tmp_path, ONE)
        old = table(tmp_path).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False, full=True)
        assert old
        assert not [path for path in old if "_rowtime" in path]
    assert numbers(tmp_path) == [*range(15), *range(1000 + left[0], 1003)]
    found = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert [one.how for one in found.outputs if one.kind == "delta"] == ["counted"], "whose rows they are is not known"
    assert found.equal


def test_not_null_beside_timestamps_without_zone_is_a_feature_that_spark_asks_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = """CREATE STREAM a (n BIGINT, day DATE);
    CREATE STREAM o (n BIGINT NOT NULL, t TIMESTAMP_NTZ) USING delta OPTIONS (path '{folder}/out');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM n, CAST(a.ROWTIME AS TIMESTAMP_NTZ) AS t FROM a;"""
    define(tmp_path, sql)
    send(tmp_path, range(5))
    run(spark, tmp_path, sql)
    assert {"invariants", "timestampNtz"} <= set(table(tmp_path).protocol().writer_features or ())
    assert numbers(tmp_path) == list(range(5))
    found = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert [one.how for one in found.outputs if one.kind == "delta"] == ["as a set"]
    assert found.equal, found


def test_a_table_restored_on_purpose_continues_from_there(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, ONE)
    for at in (0, 5):
        send(tmp_path, range(at, at + 5))
        run(spark, tmp_path, ONE)
    table(tmp_path).restore(1)
    assert numbers(tmp_path) == list(range(5))
    send(tmp_path, range(10, 15))
    run(spark, tmp_path, ONE)
    assert numbers(tmp_path) == [*range(5), *range(10, 15)]


def test_another_driver_with_the_same_tick_commits_nothing(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, ONE)
    send(tmp_path, range(5))
    run(spark, tmp_path, ONE)
    place = Checkpoint(tmp_path / "check")
    place.published -= 1  # the state after a crash between the commit and its note
    before = table(tmp_path).version()
    run(spark, tmp_path, ONE)
    assert table(tmp_path).version() == before
    assert numbers(tmp_path) == list(range(5))


def test_an_existing_table_defines_the_types(spark: SparkSession, tmp_path: Path) -> None:
    sql = """CREATE STREAM a (n BIGINT, day DATE, x DECIMAL(10, 2));
    CREATE STREAM o (n BIGINT, day DATE, x DECIMAL(10, 2)) USING delta OPTIONS (path '{folder}/out');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM n, day, x FROM a;"""
    define(tmp_path, sql)
    fields = [
        pa.field("n", pa.int32()),
        pa.field("x", pa.decimal128(4, 1)),
        pa.field("day", pa.date32(), nullable=False),
        pa.field("more", pa.string()),
        pa.field("rowtime", pa.timestamp("us", "UTC")),
    ]
    schema = pa.schema(fields)
    write_deltalake(str(tmp_path / "out"), pa.table({f.name: pa.array([], f.type) for f in schema}, schema=schema))
    day = "2024-01-01"
    rows = [(1, day, "2.25"), (2**31, day, "1"), (3, None, "1"), (4, day, "99999"), (5, day, "999.9")]
    with rt.writer("a", home=tmp_path / "home") as log:
        log.insert([{"n": n, "day": d, "x": x, "rowtime": at} for at, (n, d, x) in enumerate(rows)])
    query = run(spark, tmp_path, sql)
    assert query.ledger["p"] == {"in": 5, "accepted": 2, "MALFORMED": 3}
    found = table(tmp_path).to_pyarrow_table()
    assert found.schema.field("n").type == pa.int32()
    assert sorted((row["n"], str(row["x"]), row["more"]) for row in found.to_pylist()) == [
        (1, "2.3", None),
        (5, "999.9", None),
    ]
    assert verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal


def refusal(spark: SparkSession, folder: Path, sql: str = ONE, check: str = "check") -> RowtimeError:
    with pytest.raises((Refused, Failure)) as raised:
        run(spark, folder, sql, check)
    return raised.value


def test_columns_that_do_not_fit_a_table_are_refused_at_the_start(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, ONE)
    send(tmp_path, range(5))
    required = pa.field("k", pa.int64(), nullable=False)
    schema = pa.schema([pa.field("N", pa.int64()), pa.field("rowtime", pa.string()), required])
    write_deltalake(str(tmp_path / "out"), pa.table({f.name: pa.array([], f.type) for f in schema}, schema=schema))
    problems = refusal(spark, tmp_path).problems
    assert [problem.code for problem in problems] == ["R561"] * 3
    assert "STRING" in str(problems[0]) or "ROWTIME" in str(problems[0]).upper()
    assert any("Write it as the table does: N." in problem.hint for problem in problems)
    shutil.rmtree(tmp_path / "out")

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "some.csv").write_text("1\n")
    assert refusal(spark, tmp_path).problems[0].code == "R562"
    shutil.rmtree(tmp_path / "out")

    empty = pa.table({"n": pa.array([], pa.int64()), "rowtime": pa.array([], pa.timestamp("us", "UTC"))})
    write_deltalake(str(tmp_path / "out"), empty)
    table(tmp_path).alter.add_constraint({"positive": "n > 0"})
    found = refusal(spark, tmp_path).problems[0]
    assert (found.code, "positive" in found.message, "pump p" in found.message) == ("R563", True, True)
    shutil.rmtree(tmp_path / "out")

    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "deltalake", None)
        found = refusal(spark, tmp_path).problems[0]
        assert (found.code, "rowtime[delta]" in found.hint) == ("R560", True)
    assert not (tmp_path / "out").exists(), "nothing was written"


def test_a_table_without_the_rows_that_it_got_is_never_filled_again(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, ONE)
    send(tmp_path, range(5))
    run(spark, tmp_path, ONE)
    shutil.copytree(tmp_path / "out", tmp_path / "older")
    send(tmp_path, range(5, 10))
    run(spark, tmp_path, ONE)
    shutil.move(tmp_path / "out", tmp_path / "right")
    found = refusal(spark, tmp_path).problems[0]
    assert (found.code, "pump p" in found.message, "is gone" in found.message) == ("R564", True, True)
    shutil.copytree(tmp_path / "older", tmp_path / "out")
    found = refusal(spark, tmp_path).problems[0]
    assert (found.code, "has 5 of them" in found.message) == ("R564", True)
    shutil.rmtree(tmp_path / "out")
    write_deltalake(str(tmp_path / "out"), table_of(tmp_path / "right"))
    assert refusal(spark, tmp_path).problems[0].code == "R564", "another table with the same rows"
    shutil.rmtree(tmp_path / "out")
    # Also while it runs.
    shutil.copytree(tmp_path / "right", tmp_path / "out")
    engine = (
        rt.Pipeline(spark, home=tmp_path / "home")
        .sql(ONE.format(folder=tmp_path))
        ._engine(tmp_path / "check", rt.Limits(), ends=False)
    )
    shutil.rmtree(tmp_path / "out" / "_delta_log")
    send(tmp_path, range(10, 15))
    with pytest.raises(Refused, match="R564"):
        engine.tick()
    engine.stop()
    shutil.copytree(tmp_path / "right" / "_delta_log", tmp_path / "out" / "_delta_log")
    run(spark, tmp_path, ONE)
    assert numbers(tmp_path) == list(range(15)), "restored, it goes on"


def table_of(folder: Path) -> pa.Table:
    return DeltaTable(str(folder)).to_pyarrow_table()


def test_a_table_that_knows_more_than_the_journal_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, ONE)
    for at in (0, 5):
        send(tmp_path, range(at, at + 5))
        run(spark, tmp_path, ONE)
        if not at:
            shutil.copytree(tmp_path / "check", tmp_path / "older")
    found = refusal(spark, tmp_path, check="older").problems[0]
    assert found.code == "R420"
    found = refusal(spark, tmp_path, check="new").problems[0]
    assert found.code == "R440", "a pump of another checkpoint"
    run(spark, tmp_path, ONE, check="new", take_over=["p"])
    assert numbers(tmp_path) == sorted([*range(10), *range(10)]), "it reads the stream from its beginning"
    assert refusal(spark, tmp_path).problems[0].code == "R441"


CHANGES = """
CREATE STREAM latest (airport STRING NOT NULL, hour TIMESTAMP NOT NULL, n BIGINT, arrivals BIGINT, total BIGINT)
  USING delta OPTIONS (path '{folder}/latest', key 'hour, airport', rowtime.column '');
CREATE STREAM remains (airport STRING NOT NULL, hour TIMESTAMP NOT NULL, arrivals BIGINT, total BIGINT, change STRING)
  USING delta OPTIONS (path '{folder}/out', key 'hour, airport', mode 'changes');
CREATE PUMP p1 AS INSERT INTO latest
  SELECT STREAM COALESCE(airport, '?') AS airport, hour, n, arrivals, total FROM hourly;
CREATE PUMP p2 AS INSERT INTO remains
  SELECT STREAM COALESCE(airport, '?') AS airport, hour, arrivals, total, change FROM changed;
"""


LATEST = """CREATE STREAM a (n BIGINT, day DATE);
CREATE STREAM o (day DATE NOT NULL, n BIGINT, change STRING) USING delta PARTITIONED BY (day)
  OPTIONS (path '{folder}/out', key 'day', mode 'changes', rowtime.column '');
CREATE PUMP p AS INSERT INTO o
  SELECT STREAM day, n, CASE WHEN n % 10 = 9 THEN 'RETRACT' ELSE 'INSERT' END AS change FROM a;"""


@pytest.mark.slow
def test_the_last_row_of_a_key_counts_whenever_the_driver_dies(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(tmp_path, LATEST)
    left: dict[int, int] = {}
    for at, point in enumerate(("after journal", "first commit", "files in place", "after output")):
        given = range(at * 7, at * 7 + 7)
        send(tmp_path, given)
        dies_in(spark, tmp_path, LATEST, point, monkeypatch)
        run(spark, tmp_path, LATEST)
        for n in given:
            left[n % 3] = n
        left = {key: n for key, n in left.items() if n % 10 != 9}
        assert numbers(tmp_path) == sorted(left.values()), point
    send(tmp_path, range(29, 30))  # removes a row that does not exist: the version has only the mark
    run(spark, tmp_path, LATEST)
    assert table(tmp_path).history(1)[0]["rowtime.tick"] == "4"
    assert numbers(tmp_path) == sorted(n for n in left.values() if n % 3 != 29 % 3)
    found = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert found.equal, found
    table(tmp_path).delete("day = '2024-01-01'")
    assert not verify(tmp_path / "check", spark=spark, home=tmp_path / "home").equal


@pytest.mark.slow
def test_changes_leave_the_batch_answer_and_each_tick_is_one_version(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet as pq

    def made() -> rt.Pipeline:
        return rt.Pipeline(spark, home=tmp_path / "home").sql(HOURLY).sql(CHANGES.format(folder=tmp_path))

    rows, check = landings(1), tmp_path / "check"
    made().run_available(check)
    real = DeltaLog.commit
    for at, part in enumerate((rows[:120], rows[120:240], rows[240:])):
        with rt.writer("landings", home=tmp_path / "home", writer="tower") as writer:
            writer.insert(part)
            if part[-1] is rows[-1]:
                writer.end()

        def dying(self: DeltaLog, ready: Ready, *, after: bool = bool(at % 2)) -> None:
            if after:
                real(self, ready)
            raise Died

        with monkeypatch.context() as patch:
            patch.setattr(DeltaLog, "commit", dying)
            with pytest.raises(Died):
                made().run_available(check)
        query = made().run_available(check)
    refused = {n for path in query.rejected("hourly") for n in pq.read_table(path)["n"].to_pylist()}
    expected = batch(rows, refused)
    for name in ("out", "latest"):
        there = table_of(tmp_path / name).to_pylist()
        found = {(r["airport"], f"{r['hour']:%Y-%m-%d %H:%M}", r["arrivals"], r["total"]): 1 for r in there}
        assert len(found) == len(there)
        assert found == dict(expected), name
        ticks = [one["rowtime.tick"] for one in DeltaTable(str(tmp_path / name)).history() if "rowtime.tick" in one]
        assert len(ticks) == len(set(ticks)), "one version a tick"
    found = verify(check, spark=spark, home=tmp_path / "home")
    assert found.equal, found
    assert [one.how for one in found.outputs if one.kind == "delta"] == ["as a set"] * 2


def test_two_pumps_that_change_one_table_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    sql = """CREATE STREAM a (n BIGINT NOT NULL, day DATE);
    CREATE STREAM o (n BIGINT NOT NULL) USING delta OPTIONS (path '{folder}/out', key 'n');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;
    CREATE PUMP q AS INSERT INTO o SELECT STREAM n FROM a;"""
    define(tmp_path, sql)
    send(tmp_path, range(5))
    assert refusal(spark, tmp_path, sql).problems[0].code == "R566"


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("(n BIGINT, day DATE) USING delta", "R207"),
        ("(n BIGINT, day DATE) USING delta OPTIONS (path '/o', key 'n')", "R567"),
        ("(n BIGINT NOT NULL, day DATE) USING delta OPTIONS (path '/o', key 'm')", "R504"),
        ("(n BIGINT, day DATE) USING delta OPTIONS (path '/o', mode 'upsert')", "R504"),
        ("(n DOUBLE, day DATE) USING delta PARTITIONED BY (n) OPTIONS (path '/o')", "R570"),
        ("(n BIGINT, day DATE) USING delta PARTITIONED BY (m) OPTIONS (path '/o')", "R504"),
        ("(n BIGINT, day DATE) USING parquet PARTITIONED BY (m) OPTIONS (path '/o')", "R504"),
        ("(n BIGINT, day DATE) USING csv PARTITIONED BY (n, day) OPTIONS (path '/o', rowtime.column '')", "R504"),
        ("(n DOUBLE, day DATE) USING json PARTITIONED BY (n) OPTIONS (path '/o')", "R570"),
        ("(n BIGINT, day DATE) USING parquet PARTITIONED BY (rowtime) OPTIONS (path '/o')", "R570"),
        ("(n BIGINT, day DATE) USING delta PARTITIONED BY (rowtime) OPTIONS (path '/o')", "R570"),
        ("(n BIGINT, day DATE) USING delta OPTIONS (path '/o', mergeSchema 'true')", "R540"),
    ],
)
def test_check_refuses_declarations_that_delta_does_not_support(tmp_path: Path, target: str, code: str) -> None:
    sql = f"CREATE STREAM a (n BIGINT, day DATE); CREATE STREAM o {target}; INSERT INTO o SELECT STREAM * FROM a;"
    with pytest.raises(Refused) as raised:
        rt.Pipeline(home=tmp_path / "home").sql(sql).compile()
    assert code in {problem.code for problem in raised.value.problems}, raised.value


@pytest.mark.parametrize("value", ["PARSE_JSON('1')", "CAST('10:00' AS TIME)", "INTERVAL '1' DAY"])
def test_a_type_that_delta_does_not_have_is_refused_by_check(tmp_path: Path, value: str) -> None:
    kind = {"P": "VARIANT", "C": "TIME", "I": "INTERVAL DAY"}[value[0]]
    sql = f"""CREATE STREAM a (n BIGINT); CREATE STREAM o (x {kind}) USING delta OPTIONS (path '/o');
    INSERT INTO o SELECT STREAM {value} AS x FROM a;"""
    with pytest.raises(Refused) as raised:
        rt.Pipeline(home=tmp_path / "home").sql(sql).compile()
    assert {problem.code for problem in raised.value.problems} == {"R530"}, raised.value
