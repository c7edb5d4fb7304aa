"""Two pumps into one target: each row belongs to a pump, and only one of two checkpoints writes (semantics 10)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.api.verification import verify
from rowtime.client.log_items import Leave, Rows
from rowtime.client.stream_log import last_entry, scan
from rowtime.core.errors import Refused
from rowtime.runtime.sinks.ownership import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(2)

DEFS = "CREATE STREAM a (n BIGINT); CREATE STREAM o (n BIGINT);"
MINUTE = 60_000_000


class Death(Exception):
    """The process dies here."""


def send(folder: Path, numbers: range, stream: str = "a") -> None:
    with rt.writer(stream, home=folder / "home") as log:
        log.insert([{"n": n, "rowtime": n * MINUTE} for n in numbers])


def define(folder: Path, sql: str) -> None:
    made = rt.Pipeline(home=folder / "home").sql(sql)
    for stream in made.compile().defines:
        made.home.define(stream.name, stream.as_json(), replace=True)


def run(spark: SparkSession, folder: Path, check: str, sql: str, **how: Any) -> rt.Query:
    return rt.Pipeline(spark, home=folder / "home").sql(sql).run_available(folder / check, **how)


def die(spark: SparkSession, folder: Path, check: str, sql: str, point: str) -> None:
    """Run one tick up to a point of it, and no further."""

    def hook(at: str) -> None:
        if at == point:
            raise Death

    engine = rt.Pipeline(spark, home=folder / "home").sql(sql)._engine(folder / check, rt.Limits(), ends=False)
    engine.hook = hook
    with pytest.raises(Death):
        engine.tick()
    engine.stop()


def in_directory(folder: Path) -> list[int]:
    return sorted(n for path in folder.glob("part-*.parquet") for n in pq.read_table(path)["n"].to_pylist())


def in_log(folder: Path, writer: str = "pump.p") -> list[int]:
    log = folder / "home" / "logs" / "o"
    entries = [entry for entry in scan(log, {}).get(writer, []) if isinstance(entry, Rows)]
    return [n for entry in entries for n in pq.read_table(log / entry.path)["n"].to_pylist()]


def forget(folder: Path) -> None:
    """Remove all records of owners."""
    records = list(folder.rglob(".owner"))
    assert len(records) == 2
    for record in records:
        record.unlink()


def two_pumps(folder: Path) -> str:
    return f"""CREATE STREAM a (n BIGINT);
    CREATE STREAM o (n BIGINT) USING parquet OPTIONS (path '{folder}/out');
    CREATE PUMP even AS INSERT INTO o SELECT STREAM n FROM a WHERE n % 2 = 0;
    CREATE PUMP odd AS INSERT INTO o SELECT STREAM n FROM a WHERE n % 2 = 1;"""


def test_recovery_of_one_pump_swept_what_another_had_staged(spark: SparkSession, tmp_path: Path) -> None:
    sql = two_pumps(tmp_path)
    define(tmp_path, sql)
    send(tmp_path, range(10))
    die(spark, tmp_path, "check", sql, "after journal")
    assert in_directory(tmp_path / "out") == [], "nothing was published"
    run(spark, tmp_path, "check", sql)
    assert in_directory(tmp_path / "out") == list(range(10))
    send(tmp_path, range(10, 14))
    run(spark, tmp_path, "check", sql)
    assert in_directory(tmp_path / "out") == list(range(14))
    found = verify(tmp_path / "check", spark=spark, home=tmp_path / "home")
    assert [(output.name, output.rows) for output in found.outputs if output.kind == "parquet"] == [
        ("even.sink", 7),
        ("odd.sink", 7),
    ]
    assert found.equal, found


def test_a_pipeline_that_started_swept_what_a_tick_of_another_had_staged(spark: SparkSession, tmp_path: Path) -> None:
    """One pipeline dies with committed rows, while the other starts in the same directory."""

    def sql(n: int) -> str:
        return f"""CREATE STREAM a{n} (n BIGINT);
        CREATE STREAM o (n BIGINT) USING parquet OPTIONS (path '{tmp_path}/out');
        CREATE PUMP p{n} AS INSERT INTO o SELECT STREAM n FROM a{n};"""

    for n in (1, 2):
        define(tmp_path, sql(n))
        send(tmp_path, range(n * 10, n * 10 + 3), f"a{n}")
    die(spark, tmp_path, "check1", sql(1), "after journal")
    run(spark, tmp_path, "check2", sql(2))
    run(spark, tmp_path, "check1", sql(1))
    assert in_directory(tmp_path / "out") == [10, 11, 12, 20, 21, 22]
    for n in (1, 2):
        found = verify(tmp_path / f"check{n}", spark=spark, home=tmp_path / "home")
        assert found.equal, found


def pump(select: str, name: str = "p") -> str:
    return f"{DEFS} CREATE PUMP {name} AS INSERT INTO o {select};"


def test_the_first_rows_of_a_new_checkpoint_were_mistaken_for_repeats(spark: SparkSession, tmp_path: Path) -> None:
    first, second = pump("SELECT STREAM n FROM a WHERE n < 3"), pump("SELECT STREAM n * 100 AS n FROM a")
    define(tmp_path, DEFS)
    send(tmp_path, range(6))
    run(spark, tmp_path, "check1", first)
    assert in_log(tmp_path) == [0, 1, 2]
    with pytest.raises(Refused, match=r"R440 the stream o is written by another pump p: there are 3 rows") as refused:
        run(spark, tmp_path, "check2", second)
    assert str(tmp_path / "check1") in str(refused.value)
    assert "ALTER PUMP p TAKE OVER" in str(refused.value)
    assert in_log(tmp_path) == [0, 1, 2]

    # With another name: a writer of its own, beside the other.
    run(spark, tmp_path, "check3", pump("SELECT STREAM n * 100 AS n FROM a", "q"))
    assert in_log(tmp_path, "pump.q") == [0, 100, 200, 300, 400, 500]

    # With the option: rows follow the present ones.
    query = run(spark, tmp_path, "check2", second, take_over=["p"])
    assert in_log(tmp_path) == [0, 1, 2, 500], "the writer's clock stands at the last row that the first has read"
    assert query.ledger["p.takeover"] == {"in": 5, "accepted": 0, "OUT_OF_ORDER": 5}
    refused = [row for path in query.rejected("p.takeover") for row in pq.read_table(path).to_pylist()]
    assert [(row["n"], row["reason"]) for row in refused] == [(n * 100, "OUT_OF_ORDER") for n in range(5)]
    assert {int(row["refused_by"].timestamp()) for row in refused} == {300}
    assert query.engine.entry["control"]["p.sink"]["base"] == 3

    with pytest.raises(Refused, match=r"R441 the pipeline of .*check2 has taken over the stream o"):
        run(spark, tmp_path, "check1", first)
    with pytest.raises(Refused, match="R441"):
        run(spark, tmp_path, "check1", first, take_over=["p"])
    send(tmp_path, range(7, 9))
    run(spark, tmp_path, "check2", second)
    assert in_log(tmp_path)[-2:] == [700, 800]
    found = verify(tmp_path / "check2", spark=spark, home=tmp_path / "home")
    assert found.equal, found


def test_a_takeover_survives_a_crash_at_any_point(spark: SparkSession, tmp_path: Path) -> None:
    first = pump("SELECT STREAM n FROM a WHERE n < 3")
    second = pump("SELECT STREAM n FROM a WHERE n > 3") + "ALTER PUMP p TAKE OVER;"
    define(tmp_path, DEFS)
    send(tmp_path, range(6))
    run(spark, tmp_path, "check1", first)
    send(tmp_path, range(6, 8))
    for point in ("before journal", "after journal"):
        die(spark, tmp_path, "check2", second, point)
    run(spark, tmp_path, "check2", second)
    run(spark, tmp_path, "check2", second)
    assert in_log(tmp_path) == [0, 1, 2, 5, 6, 7]


def test_a_pipeline_that_runs_is_not_taken_over(spark: SparkSession, tmp_path: Path) -> None:
    define(tmp_path, DEFS)
    send(tmp_path, range(2))
    sql = pump("SELECT STREAM n FROM a")
    engine = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)._engine(tmp_path / "check1", rt.Limits(), ends=False)
    try:
        with pytest.raises(Refused, match="R442"):
            run(spark, tmp_path, "check2", sql, take_over=["p"])
        assert engine.tick() is not None
    finally:
        engine.stop()
    assert in_log(tmp_path) == [0, 1]


def test_a_new_checkpoint_wrote_rows_twice_into_a_directory(spark: SparkSession, tmp_path: Path) -> None:
    """25 rows became 58."""
    sql = f"""CREATE STREAM a (n BIGINT);
    CREATE STREAM o (n BIGINT) USING parquet OPTIONS (path '{tmp_path}/out');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;"""
    define(tmp_path, sql)
    send(tmp_path, range(4))
    run(spark, tmp_path, "check1", sql)
    with pytest.raises(Refused, match=r"R440 the directory .*/out is written by another pump p: there is 1 file,"):
        run(spark, tmp_path, "check2", sql)
    assert in_directory(tmp_path / "out") == [0, 1, 2, 3]
    run(spark, tmp_path, "check2", sql, take_over=["P"])
    assert in_directory(tmp_path / "out") == [0, 0, 1, 1, 2, 2, 3, 3]
    assert verify(tmp_path / "check2", spark=spark, home=tmp_path / "home").equal
    with pytest.raises(Refused, match="R441"):
        run(spark, tmp_path, "check1", sql)


def test_targets_without_a_record_belong_to_their_writers(spark: SparkSession, tmp_path: Path) -> None:
    sql = f"""CREATE STREAM a (n BIGINT); CREATE STREAM o (n BIGINT);
    CREATE STREAM f (n BIGINT) USING parquet OPTIONS (path '{tmp_path}/out');
    CREATE PUMP p AS INSERT INTO o SELECT STREAM n FROM a;
    CREATE PUMP d AS INSERT INTO f SELECT STREAM n FROM a;"""
    define(tmp_path, sql)
    send(tmp_path, range(4))
    die(spark, tmp_path, "check1", sql, "after journal")
    forget(tmp_path)
    run(spark, tmp_path, "check1", sql)
    assert (in_log(tmp_path), in_directory(tmp_path / "out")) == ([0, 1, 2, 3], [0, 1, 2, 3])
    forget(tmp_path)

    for only in ("p", "d"):
        with pytest.raises(Refused, match=r"R440 .* by a pipeline that left no record"):
            run(spark, tmp_path, f"check {only}", sql, take_over=["d" if only == "p" else "p"])
    assert read(tmp_path / "out" / "_rowtime" / "d") is None, "a start that is refused records nothing"
    send(tmp_path, range(4, 6))
    run(spark, tmp_path, "check1", sql)
    assert (in_log(tmp_path), in_directory(tmp_path / "out")) == (list(range(6)), list(range(6)))
    found = verify(tmp_path / "check1", spark=spark, home=tmp_path / "home")
    assert found.equal, found


def test_the_writer_of_a_dropped_pump_held_the_stream_for_ever(spark: SparkSession, tmp_path: Path) -> None:
    both = pump("SELECT STREAM n FROM a") + "CREATE PUMP q AS INSERT INTO o SELECT STREAM n * 10 AS n FROM a;"
    define(tmp_path, DEFS)
    send(tmp_path, range(3))
    run(spark, tmp_path, "check", both)
    log = tmp_path / "home" / "logs" / "o"
    assert not isinstance(last_entry(log, "pump.p"), Leave)
    send(tmp_path, range(3, 5))
    run(spark, tmp_path, "check", both + "DROP PUMP q;")
    assert isinstance(last_entry(log, "pump.q"), Leave)
    assert not isinstance(last_entry(log, "pump.p"), Leave)
    count = len(scan(log, {})["pump.q"])
    run(spark, tmp_path, "check", both + "DROP PUMP q;")
    assert len(scan(log, {})["pump.q"]) == count, "it leaves once"
    send(tmp_path, range(5, 6))
    run(spark, tmp_path, "check", both)
    assert in_log(tmp_path, "pump.q") == [0, 10, 20, 50], "it came back, and its numbers went on"
