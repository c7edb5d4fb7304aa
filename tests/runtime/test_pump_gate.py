"""A pump is a typed edge: the declarations of its target hold for all kinds of targets; a bad row ends no run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.core.errors import Refused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.sampled(2)

A = "CREATE STREAM a (n BIGINT, k STRING, d DOUBLE);\n"
ROWS = [
    {"n": 1, "k": "a", "d": 1.5},
    {"n": 2, "k": "ab ", "d": 2.9},
    {"n": 2**40, "k": "a", "d": 1.0},  # no INT
    {"n": None, "k": "a", "d": 1.0},  # NOT NULL
    {"n": 3, "k": "abcd", "d": 1.0},  # no CHAR(3)
    {"n": 3, "k": "a", "d": 300.0},  # no TINYINT
    {"n": 3, "k": "a", "d": -3.0},  # CHECK
    {"n": 4, "k": None, "d": None},
]
COLUMNS = "i INT NOT NULL, small TINYINT CHECK (10 / small > 0), c CHAR(3)"
GOOD = [(1, 1, "a  "), (2, 2, "ab "), (4, None, None)]
BROKEN = [(2**40, "i INT NOT NULL"), (None, "i INT NOT NULL"), (3, "c CHAR(3)"), (3, "small TINYINT"),
          (3, "10 / `small` > 0")]  # fmt: skip


def send(folder: Path, rows: list[dict[str, Any]], first: int = 0) -> None:
    with rt.writer("a", home=folder / "home") as log:
        log.insert([{**row, "rowtime": f"2024-01-01 10:00:{n:02}"} for n, row in enumerate(rows, first)])


def made(spark: SparkSession, folder: Path, sql: str) -> rt.Pipeline:
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(A + sql)
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    return pipeline


def of(batch: Any, got: list[tuple[Any, ...]]) -> None:
    got.extend(tuple(row.values())[1:] for row in batch.table().to_pylist()) if batch.count else None


def refused(query: Any, gate: str) -> list[dict[str, Any]]:
    return [row for path in query.rejected(gate) for row in pq.read_table(path).to_pylist()]


def test_every_kind_of_target_gets_its_columns_and_no_row_that_does_not_fit(
    spark: SparkSession, tmp_path: Path
) -> None:
    select = "SELECT STREAM n, d, k AS text FROM a"
    sql = "".join(
        f"CREATE STREAM o{kind} ({COLUMNS}){using}; CREATE PUMP p{kind} AS INSERT INTO o{kind} {select};\n"
        for kind, using in {
            "log": "",
            "parquet": f" USING parquet OPTIONS (path '{tmp_path}/parquet')",
            "csv": f" USING csv OPTIONS (path '{tmp_path}/csv', header 'true')",
            "function": "",
        }.items()
    )
    sql += "SELECT STREAM l.*, 1 AS one FROM olog AS l;"  # and the reader of the log in the same script
    pipeline = made(spark, tmp_path, sql)
    calls: list[tuple[Any, ...]] = []
    here: list[tuple[Any, ...]] = []
    pipeline.sink("ofunction", lambda batch: of(batch, calls)).sink("result", lambda batch: of(batch, here))
    send(tmp_path, ROWS)
    with rt.writer("a", home=tmp_path / "home") as log:
        log.end()
    query = pipeline.run_available(tmp_path / "check")

    counts = {"in": 8, "accepted": 3, "MALFORMED": 5}
    for kind in ("log", "parquet", "csv", "function"):
        assert (kind, query.ledger[f"p{kind}"]) == (kind, counts)
        assert query.engine.entry["control"][f"p{kind}.sink"]["sequence"] == 3, "refused rows take no number"
    assert calls == GOOD
    assert here == [(*row, 1) for row in GOOD]
    files = pq.read_table(tmp_path / "parquet")
    assert files.column_names == ["rowtime", "i", "small", "c"]
    assert [tuple(row.values())[1:] for row in files.to_pylist()] == GOOD
    (text,) = (tmp_path / "csv").glob("part-*")
    assert [[cell.rstrip() for cell in line.split(",")[1:]] for line in text.read_text().splitlines()] == [
        ["i", "small", "c"], ["1", "1", "a"], ["2", "2", "ab"], ["4", "", ""],
    ]  # fmt: skip
    again: list[tuple[Any, ...]] = []
    rt.Pipeline(spark, home=tmp_path / "home").sql("SELECT STREAM * FROM olog").sink(
        "result", lambda batch: of(batch, again)
    ).run_available(tmp_path / "again")
    assert again == GOOD, "the log"
    rows = refused(query, "plog")
    assert [(row["n"], row["raw_record"]) for row in rows] == BROKEN, "the query's columns, unconverted"
    assert [(row["writer"], row["position"], row["reason"]) for row in rows] == [
        ("main", place, "MALFORMED") for place in (2, 3, 4, 5, 6)
    ]
    found = rt.verify(tmp_path / "check", made(spark, tmp_path, sql).sink("ofunction", print).sink("result", print))
    assert found.equal, found


@pytest.mark.slow
def test_rejected_of_a_pump_is_a_stream_with_the_columns_of_its_query(spark: SparkSession, tmp_path: Path) -> None:
    """The columns beside them, as at any gate: reason, time, writer; rows that break a declared order are there too."""
    sql = """CREATE STREAM q (b INT ASCENDING CHECK (b > 0), w STRING);
        CREATE PUMP p AS INSERT INTO q (w, b) SELECT STREAM k, n FROM a;
        CREATE VIEW bad AS SELECT STREAM n, k, reason, position FROM p.rejected;
        SELECT STREAM 100 / b AS part, COUNT(*) AS many FROM q GROUP BY 100 / b"""
    values = [-5, -2, 3, 50, 2**40, 20, 100]
    for cut in ([7], [3, 4]):
        folder = tmp_path / str(len(cut))
        got: list[tuple[Any, ...]] = []
        sql_of = sql.replace("CREATE VIEW bad AS", "CREATE STREAM bad (n BIGINT, k STRING, why STRING, at BIGINT); "
                             "CREATE PUMP keeps AS INSERT INTO bad")  # fmt: skip
        made(spark, folder, sql_of)
        first = 0
        for many in cut:
            send(folder, [{"n": n, "k": "x", "d": 0.0} for n in values[first : first + many]], first)
            first += many
            if first == len(values):
                with rt.writer("a", home=folder / "home") as log:
                    log.end()
            query = made(spark, folder, sql_of).sink("result", lambda batch, got=got: of(batch, got)).run_available(
                folder / "check"
            )  # fmt: skip
        assert [(round(part, 2), many) for part, many in got] == [(33.33, 1), (2.0, 1), (1.0, 1)], (
            "by CHECK, no group lost"
        )
        assert query.ledger["p"] == {"in": 7, "accepted": 4, "MALFORMED": 3}
        assert query.ledger["p.b"] == {"in": 4, "accepted": 3, "BROKEN_ORDER": 1}
        bad: list[tuple[Any, ...]] = []
        rt.Pipeline(spark, home=folder / "home").sql("SELECT STREAM * FROM bad").sink(
            "result", lambda batch, bad=bad: of(batch, bad)
        ).run_available(folder / "bad")
        assert sorted(bad, key=lambda row: row[3]) == [
            (-5, "x", "MALFORMED", 0), (-2, "x", "MALFORMED", 1), (2**40, "x", "MALFORMED", 4),
            (20, "x", "BROKEN_ORDER", 5),
        ]  # fmt: skip


def test_a_type_that_only_spark_knows_is_refused_before_anything_is_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = "CREATE STREAM o (x INT); CREATE PUMP p AS INSERT INTO o SELECT STREAM upper(k) AS u FROM a;"
    assert rt.check(A + sql) == []
    with pytest.raises(Refused, match="R220 u is of type STRING"):
        made(spark, tmp_path, sql).run_available(tmp_path / "check")
    assert not (tmp_path / "check" / "plan.json").exists()


def test_a_gate_with_nothing_to_check_counts_nothing_and_files_are_taken_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The plan does not know the type of COUNT; Spark does. The files of the groups are moved, not written again."""
    sql = f"""CREATE STREAM o (m TIMESTAMP, many BIGINT) USING parquet OPTIONS (path '{tmp_path}/out');
        CREATE PUMP p AS INSERT INTO o SELECT STREAM FLOOR(a.ROWTIME TO MINUTE) AS minute, COUNT(*) AS c FROM a
        GROUP BY FLOOR(a.ROWTIME TO MINUTE);"""
    pipeline = made(spark, tmp_path, sql)
    send(tmp_path, ROWS)
    with rt.writer("a", home=tmp_path / "home") as log:
        log.end()
    query = pipeline.run_available(tmp_path / "check")
    assert query.engine.steps.adopted == {"p.group": {"rowtime": "__t", "m": "minute", "many": "c"}}
    assert "p" not in query.ledger
    assert [row["many"] for row in pq.read_table(tmp_path / "out").to_pylist()] == [8]


def test_a_text_of_a_file_that_is_too_long_for_its_column_is_malformed(spark: SparkSession, tmp_path: Path) -> None:
    """CHAR is padded, blanks beyond the length are cut off; the refused row has its original text."""
    (tmp_path / "in").mkdir()
    texts = ["a", "abc   ", "abcd", None, "abc"]
    pq.write_table(pa.table({"c": texts, "v": ["x", "xy ", "x", "x", "xyz"]}), tmp_path / "in" / "1.parquet")
    got: list[tuple[Any, ...]] = []
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(
        f"CREATE STREAM f (c CHAR(3), v VARCHAR(2)) USING parquet OPTIONS (path '{tmp_path}/in');SELECT STREAM * FROM f"
    )
    query = pipeline.sink("result", lambda batch: of(batch, got)).run_available(tmp_path / "check")
    assert got == [("a  ", "x"), ("abc", "xy"), (None, "x")]
    assert query.ledger["f"] == {"in": 5, "accepted": 3, "MALFORMED": 2}
    assert [(row["c"], row["v"]) for row in refused(query, "f")] == [("abcd", "x"), ("abc", "xyz")]
