"""Windows compared with Spark's batch window functions, for frames that agree: values and types."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.runtime.session import derive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


NAMES = "k STRING, i INT, b BIGINT, d DOUBLE, m DECIMAL(12,2), s STRING, y DATE, f BOOLEAN"
CALLS = {
    "COUNT(*)": "", "COUNT(i)": "i", "SUM": "i b d m", "AVG": "i b d m", "MIN": "i d m s y", "MAX": "i d m s y",
    "STDDEV": "i d", "STDDEV_POP": "i", "VAR_SAMP": "d", "VAR_POP": "i", "FIRST_VALUE": "s", "LAST_VALUE": "m",
    "BOOL_AND": "f", "BOOL_OR": "f",
}  # fmt: skip
FRAMES = {
    "rows": "ROWS BETWEEN 5 PRECEDING AND CURRENT ROW",
    "before": "ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING",
    "all": "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "range": "RANGE BETWEEN INTERVAL '9' SECOND PRECEDING AND CURRENT ROW",
}
MORE = {
    "nth": "NTH_VALUE(s, 3) OVER ({w} ROWS BETWEEN 6 PRECEDING AND CURRENT ROW)",
    "known": "LAST_VALUE(i) IGNORE NULLS OVER ({w} ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
    "lag": "LAG(m, 2) OVER ({w})",
    "lag_default": "LAG(i, 1, 7) OVER ({w})",
    "number": "ROW_NUMBER() OVER ({w})",
    "rank": "RANK() OVER ({w})",
    "positive": "SUM(i) FILTER (WHERE i > 0) OVER ({w} ROWS BETWEEN 5 PRECEDING AND CURRENT ROW)",
}


def _rows(count: int) -> list[dict[str, Any]]:
    chance = random.Random(count)
    at, made = datetime(2024, 1, 1, tzinfo=UTC), []
    for _ in range(count):
        at += timedelta(milliseconds=chance.randint(1, 3000))  # no ties: Spark's RANGE would include later ones
        i = chance.choice([None, *range(-9, 9)])
        made.append({
            "t": at, "k": chance.choice([None, "a", "b"]), "i": i, "b": chance.randint(-(10**15), 10**15),
            "d": chance.choice([None, 1e15, 0.1, -2.5]), "m": chance.choice([None, Decimal("0.05"), Decimal("-71.10")]),
            "s": chance.choice([None, "x", "ä", ""]), "y": None if i is None else (at + timedelta(days=i)).date(),
            "f": chance.choice([None, True, False]),
        })  # fmt: skip
    return made


def _list(order: str) -> str:
    calls = []
    for name, frame in FRAMES.items():
        window = f"OVER (PARTITION BY k ORDER BY {order} {frame})"
        for call, columns in CALLS.items():
            for column in columns.split() or [""]:
                text = f"{call}({column})" if column and "(" not in call else call
                calls.append(f"{text} {window} AS {name}_{call.split('(')[0].lower()}_{column}")
    calls += [f"{text.format(w=f'PARTITION BY k ORDER BY {order}')} AS {name}" for name, text in MORE.items()]
    return ", ".join(calls)


@pytest.fixture(scope="module")
def both(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, DataFrame]:
    home = tmp_path_factory.mktemp("over")
    folder = home / "in"
    folder.mkdir()
    kinds = {"t": pa.timestamp("us", "UTC"), "k": pa.string(), "i": pa.int32(), "b": pa.int64(), "d": pa.float64(),
             "m": pa.decimal128(12, 2), "s": pa.string(), "y": pa.date32(), "f": pa.bool_()}  # fmt: skip
    table = pa.Table.from_pylist(_rows(240), pa.schema(list(kinds.items())))
    for number in range(4):  # a tick each
        pq.write_table(table.slice(number * 60, 60), folder / f"{number}.parquet")
    found: list[pa.Table] = []
    take: Any = lambda batch: found.append(batch.table())  # noqa: E731
    sql = f"""CREATE STREAM r ({NAMES}) USING parquet OPTIONS (path '{folder}', rowtime.column 't');
      CREATE PUMP p AS INSERT INTO out SELECT STREAM k, {_list("r.ROWTIME")} FROM r"""
    pipeline = rt.Pipeline(spark, home=home / "home").sql(sql).sink("out", take)
    pipeline.run_available(home / "checkpoint", end=True, limits=rt.Limits(files=1))
    frame = derive(spark).read.schema(f"t TIMESTAMP, {NAMES}").parquet(*map(str, sorted(folder.glob("*.parquet"))))
    return pa.concat_tables(found), frame.selectExpr("t AS rowtime", "k", *_split(_list("t"))).orderBy("rowtime")


def _split(text: str) -> list[str]:
    """A select list, split at the commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def test_values_are_those_of_the_batch_window_function(both: tuple[pa.Table, DataFrame]) -> None:
    ours, frame = both
    theirs = frame.toArrow()
    assert ours.column_names == theirs.column_names
    for name in theirs.column_names:
        mine, other = ours[name].to_pylist(), theirs[name].to_pylist()
        for number, (one, two) in enumerate(zip(mine, other, strict=True)):
            same = one == two if not isinstance(two, float) else one == pytest.approx(two, rel=1e-9, abs=1e-6)
            assert same, f"{name}, row {number}: {one}, Spark has {two}"


def test_types_are_those_of_the_batch_window_function(both: tuple[pa.Table, DataFrame]) -> None:
    ours, frame = both
    longer = {"number", "rank"}  # a stream may have more rows than an INT can count
    for field in frame.toArrow().schema:
        if field.name not in longer:
            assert ours.schema.field(field.name).type == field.type, field.name


def _rows_of(path: Path, column: pa.Array) -> str:
    times = pa.array([datetime(2024, 1, 1, 0, 0, n, tzinfo=UTC) for n in range(len(column))], pa.timestamp("us", "UTC"))
    (path / "in").mkdir()
    pq.write_table(pa.table({"rowtime": times, "x": column}), path / "in" / "x.parquet")
    return str(path / "in")


@pytest.mark.parametrize(("kind", "call"), [("STRING", "SUM(x)"), ("STRING", "AVG(x)"), ("ARRAY<INT>", "MAX(x)")])
def test_windows_that_cannot_be_computed_are_refused_before_their_first_value(
    spark: SparkSession, tmp_path: Path, kind: str, call: str
) -> None:
    place = _rows_of(tmp_path, pa.array(["1", "2"]) if kind == "STRING" else pa.array([[1], [2]], pa.list_(pa.int32())))
    sql = f"CREATE STREAM s (x {kind}) USING parquet OPTIONS (path '{place}'); "
    sql += f"SELECT STREAM {call} OVER (ROWS 1 PRECEDING) AS y FROM s"
    with pytest.raises(rt.Refused, match=f"does not take {kind.split('<', maxsplit=1)[0]}"):
        rt.Pipeline(spark, home=tmp_path / "home").sql(sql).run_available(end=True)


def test_a_sum_that_its_type_cannot_hold_fails_with_a_code_if_the_script_stops(
    spark: SparkSession, tmp_path: Path
) -> None:
    place = _rows_of(tmp_path, pa.array([2**63 - 1, 2**63 - 1], pa.int64()))
    sql = f"CREATE STREAM s (x BIGINT) USING parquet OPTIONS (path '{place}'); "
    sql += "SELECT STREAM SUM(x) OVER (ROWS 1 PRECEDING) AS y FROM s ON ERROR STOP"
    with pytest.raises(rt.Failure, match="beyond BIGINT") as failed:
        rt.Pipeline(spark, home=tmp_path / "home").sql(sql).run_available(end=True)
    assert failed.value.problems[0].code == "R507"


def test_files_that_a_sink_takes_over_have_the_rows_that_a_function_gets(spark: SparkSession, tmp_path: Path) -> None:
    kinds = {"t": pa.timestamp("us", "UTC"), "k": pa.string(), "i": pa.int32(), "d": pa.float64(),
             "m": pa.decimal128(12, 2), "s": pa.string(), "y": pa.date32()}  # fmt: skip
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pylist(_rows(90), pa.schema(list(kinds.items()))), tmp_path / "in" / "0.parquet")
    query = """SELECT STREAM k, COUNT(*) OVER w AS n, SUM(i) OVER w AS total, AVG(d) OVER w AS mean,
      MAX(s) OVER w AS "m x", LAST_VALUE(m) OVER w AS l, MIN(y) OVER w AS y
      FROM r WINDOW w AS (PARTITION BY k RANGE INTERVAL '9' SECOND PRECEDING)"""
    sql = f"""CREATE STREAM r ({NAMES}) USING parquet OPTIONS (path '{tmp_path / "in"}', rowtime.column 't');
      CREATE STREAM files (k STRING, n BIGINT, total BIGINT, mean DOUBLE, "m x" STRING, l DECIMAL(12,2), y DATE)
        USING parquet OPTIONS (path '{tmp_path / "out"}');
      CREATE PUMP p AS INSERT INTO files {query}; CREATE PUMP q AS INSERT INTO given {query}"""
    found: list[pa.Table] = []
    take: Any = lambda batch: found.append(batch.table())  # noqa: E731
    rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("given", take).run_available(
        tmp_path / "checkpoint", end=True
    )
    files = sorted((tmp_path / "out").glob("part-*.parquet"))
    assert files
    assert all("-complete-" in file.name for file in files)
    assert pa.concat_tables(map(pq.read_table, files)).equals(pa.concat_tables(found))


def test_fields_of_structs_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    place = _rows_of(tmp_path, pa.array([{"a b": 1, "c.d`": ["x"]}, {"a b": 2, "c.d`": None}]))
    found: list[Any] = []
    take: Any = lambda batch: found.extend(batch.table().to_pylist())  # noqa: E731
    sql = f"""CREATE STREAM s (x STRUCT<`a b`: BIGINT, `c.d```: ARRAY<STRING>>) USING parquet
        OPTIONS (path '{place}', rowtime.column 'rowtime');
      CREATE PUMP p AS INSERT INTO out SELECT STREAM LAG(x) OVER (ROWS 1 PRECEDING) AS y FROM s"""
    rt.Pipeline(spark, home=tmp_path / "home").sql(sql).sink("out", take).run_available(
        tmp_path / "checkpoint", end=True
    )
    assert [row["y"] for row in found] == [None, {"a b": 1, "c.d`": ["x"]}]
