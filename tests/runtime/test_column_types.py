"""The types of results are the same in every tick, whichever inputs have rows in it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowtime as rt
from rowtime.api.python_functions import PythonFunction, register
from rowtime.frames import catalyst
from rowtime.frames.called import calls_user
from rowtime.frames.kinds import spark_type, type_text
from rowtime.plan.bind.python_code import PythonCode
from rowtime.plan.program import compile_script
from rowtime.runtime.analysis import analysed
from rowtime.runtime.column_types import ColumnTypes
from rowtime.runtime.session import derive
from rowtime.sql.generate import quoted, to_spark
from tests.goldens.scripts import scripts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from sqlglot import exp

    from rowtime.operators.contract import Operator

pytestmark = pytest.mark.sampled(8)

A, B = "CREATE STREAM a (v INT, w STRING);", "CREATE STREAM b (v BIGINT, w STRING);"
MEET = "ON a.v = b.v AND b.ROWTIME BETWEEN a.ROWTIME AND a.ROWTIME + INTERVAL '1' SECOND"


def run(spark: SparkSession, folder: Path, sql: str, parts: list[dict[str, list[int]]]) -> tuple[list[Any], set[Any]]:
    """Rows and the schemas of all ticks: each part is a tick, and the end is another one."""
    rows: list[Any] = []
    schemas: set[Any] = set()

    def take(batch: rt.Batch) -> None:
        if batch.count:
            assert all(field.nullable for field in batch.table().schema)
            table = batch.table().drop_columns(["rowtime"])
            rows.extend(tuple(row.values()) for row in table.to_pylist())
            schemas.add(tuple((field.name, str(field.type)) for field in table.schema))

    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql).sink("result", take)
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    for second, part in enumerate([*parts, {}]):
        for name in ("a", "b"):
            with rt.writer(name, home=folder / "home") as log:
                at = f"2024-01-01 10:00:{second:02}"
                own = {"at": at} if "EVENT SHAPE" in sql else {}
                log.insert([{"rowtime": at, "v": v, "w": "x", **own} for v in part.get(name, ())])
                if part:
                    log.set_rowtime_bound(f"2024-01-01 10:00:{second + 1:02}")
                else:
                    log.end()
        pipeline.run_available(folder / "check")
    return rows, schemas


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        ("v", "v", "int64"),
        ("v + 1", "v", "int64"),
        ("v * 0.5", "v", "decimal128(21, 1)"),
        ("MAX(v) OVER (PARTITION BY w)", "v", "int64"),
    ],
)
def test_a_union_is_as_wide_in_a_tick_in_which_one_input_has_no_row(
    left: str, right: str, kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    sql = f"{A}{B} SELECT STREAM {left} AS n FROM a UNION ALL SELECT STREAM {right} FROM b"
    rows, schemas = run(spark, tmp_path, sql, [{"a": [1]}, {"b": [2]}, {"a": [3], "b": [4]}])
    assert len(rows) == 4
    assert schemas == {(("n", kind),)}


def test_a_union_of_groups_is_as_wide_in_every_tick(spark: SparkSession, tmp_path: Path) -> None:
    sql = f"""{A}{B} SELECT STREAM FLOOR(a.ROWTIME TO SECOND) AS s, COUNT(*) AS n, AVG(v) AS m FROM a
        GROUP BY FLOOR(a.ROWTIME TO SECOND)
        UNION ALL SELECT STREAM FLOOR(b.ROWTIME TO SECOND), CAST(0 AS TINYINT), MAX(v) FROM b
        GROUP BY FLOOR(b.ROWTIME TO SECOND)"""
    rows, schemas = run(spark, tmp_path, sql, [{"a": [1]}, {"b": [2]}])
    assert [row[1:] for row in rows] == [(1, 1.0), (0, 2.0)]
    assert schemas == {(("s", "timestamp[us, tz=UTC]"), ("n", "int64"), ("m", "double"))}


@pytest.mark.parametrize("side", ["LEFT", "FULL"])
def test_the_nulls_of_a_side_that_never_had_a_row_have_its_types(
    side: str, spark: SparkSession, tmp_path: Path
) -> None:
    sql = f"{A}{B} SELECT STREAM a.v AS x, b.v AS y, b.w FROM a {side} JOIN b {MEET}"
    rows, schemas = run(spark, tmp_path, sql, [{"a": [1]}, {"a": [2]}])
    assert rows == [(1, None, None), (2, None, None)]
    assert schemas == {(("x", "int32"), ("y", "int64"), ("w", "string"))}


def test_the_nulls_of_a_side_that_computes_have_its_types(spark: SparkSession, tmp_path: Path) -> None:
    computed = "(SELECT STREAM v / 2 AS v, v > 1 AS big, ARRAY(v) AS l FROM b) AS b"
    sql = f"{A}{B} SELECT STREAM a.v AS x, b.v AS y, b.big, b.l FROM a LEFT JOIN {computed} {MEET}"
    rows, schemas = run(spark, tmp_path, sql, [{"a": [1]}, {"a": [3], "b": [6]}])
    assert rows == [(1, None, None, None), (3, 3.0, True, [6])]
    kinds = (("x", "int32"), ("y", "double"), ("big", "bool"), ("l", str(pa.list_(pa.field("element", pa.int64())))))
    assert schemas == {kinds}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("computed", "kind"),
    [("v / 2 AS h FROM b", "double"), ("COUNT(*) + 2 AS w FROM b GROUP BY COUNT_WINDOW(1), v", "int64")],
)
def test_the_nulls_of_events_without_a_partner_have_the_types_of_one(
    computed: str, kind: str, spark: SparkSession, tmp_path: Path
) -> None:
    events = [stream.replace(");", ", at TIMESTAMP) EVENT SHAPE POINT (at);") for stream in (A, B)]
    name = computed.split()[computed.split().index("AS") + 1]
    sql = (
        f"{' '.join(events)} SELECT STREAM a.v AS x, b.v AS y, b.{name} "
        f"FROM a LEFT JOIN (SELECT STREAM v, {computed}) AS b ON a.v = b.v EMIT POINTS"
    )
    rows, schemas = run(spark, tmp_path, sql, [{"a": [1]}, {"a": [6], "b": [6]}])
    assert [row[-3:] for row in rows] == [(1, None, None), (6, 6, 3.0)]
    assert [kinds[-3:] for kinds in schemas] == [(("x", "int32"), ("y", "int64"), (name, kind))]


def test_the_rows_of_a_pump_have_the_types_of_its_stream(spark: SparkSession, tmp_path: Path) -> None:
    sql = (
        f"{A} CREATE STREAM b (v BIGINT); CREATE PUMP p AS INSERT INTO b SELECT STREAM v FROM a; SELECT STREAM * FROM b"
    )
    rows: list[Any] = []
    kinds: set[str] = set()
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
    pipeline.sql("INSERT INTO a (ROWTIME, v) VALUES (TIMESTAMP '2024-01-01', 7); ALTER STREAM a END")

    def take(batch: rt.Batch) -> None:
        if batch.count:
            rows.extend(batch.table()["v"].to_pylist())
            kinds.add(str(batch.table()["v"].type))

    pipeline.sink("result", take).run_available(tmp_path / "check")
    assert (rows, kinds) == ([7], {"int64"})


def test_the_files_of_a_directory_have_one_schema(spark: SparkSession, tmp_path: Path) -> None:
    """Whether or not Spark knows that a tick has no NULL, and whether or not its rows pass through the driver."""
    sql = f"""{A} CREATE STREAM b (v BIGINT, w STRING);
        CREATE STREAM o (n BIGINT) USING parquet OPTIONS (path '{tmp_path}/out', ordered 'false');
        CREATE PUMP p AS INSERT INTO o SELECT STREAM coalesce(v, 0) AS n FROM a UNION ALL SELECT STREAM v FROM b"""
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql)
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    for name in ("a", "b"):
        with rt.writer(name, home=tmp_path / "home") as log:
            log.insert([{"rowtime": "2024-01-01 10:00:00", "v": 1, "w": "x"}])
            log.set_rowtime_bound(f"2024-01-01 10:00:0{1 + (name == 'b')}")
        pipeline.run_available(tmp_path / "check")
    schemas = [pq.read_schema(file) for file in sorted((tmp_path / "out").glob("*.parquet"))]
    assert len(schemas) > 1
    assert all(field.nullable for schema in schemas for field in schema)


@pytest.mark.slow
def test_the_types_of_every_column_of_every_plan_are_known_before_the_first_row(spark: SparkSession) -> None:
    session, unknown, other = derive(spark), [], []
    for name, script in scripts().items():
        code = PythonCode(imports="CREATE FUNCTION" in script.text)
        program = compile_script(script.text, variables=script.variables, code=code)
        register(session, {function: PythonFunction(*python) for function, python in program.catalog.python.items()})
        types = ColumnTypes(session)
        for node in [] if program.problems else program.operators:
            found = zip(node.emits().names, types.of(node), strict=True)
            unknown += [(name, node.name, column) for column, kind in found if not kind]
            projection = node.projection()
            if projection is not None and not any(map(calls_user, repeat(session), projection.values())):
                other += differ(types, node, projection)
    assert unknown == []
    assert other == []


def differ(types: ColumnTypes, node: Operator, projection: Mapping[str, exp.Expr]) -> list[Any]:
    """Return the columns of a select list whose types Spark does not give to its expressions."""
    if not projection:
        return []
    items = [f"{to_spark(of)} AS {quoted(name)}" for name, of in projection.items()]
    computed = types._in_spark(node.inputs[0]).selectExpr(*items).schema
    there = {field.name: type_text(field.dataType) for field in computed}
    here = dict(zip(node.emits().names, types.of(node), strict=True))
    return [
        (node.name, name, here[name], kind)
        for name, kind in there.items()
        if name in here and spark_type(here[name]) != spark_type(kind)
    ]


PLAIN = """CREATE STREAM a (v INT, w STRING, d DECIMAL(9, 2), at TIMESTAMP);
SELECT STREAM v + 1 AS n, w || 'x' AS t, d * 2.5 AS m, CASE WHEN at < ROWTIME THEN v END AS c,
  FLOOR(at TO HOUR) AS h, STRUCT(v, w) AS s FROM a WHERE v % 7 = 3 AND w IN ('a', 'b')"""


def test_spark_is_not_asked_about_expressions_that_the_driver_computes(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, session = compile_script(PLAIN), derive(spark)
    monkeypatch.setattr(catalyst, "_frame", lambda _, part, __: pytest.fail(f"Spark is asked about {part}"))
    assert not analysed(session, program)
    types = ColumnTypes(session)
    assert all(all(types.of(node)) for node in program.operators)
    monkeypatch.undo()
    for node in program.operators:
        assert differ(types, node, node.projection() or {}) == []
