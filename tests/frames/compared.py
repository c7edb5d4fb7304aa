"""Compares what the driver computes with Spark: values, types, and which rows fail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
from pyspark.errors import PySparkException

from rowtime.frames.kinds import spark_type
from rowtime.frames.local import LocalFrame
from rowtime.frames.optimizers import restrict
from rowtime.frames.queries import SETTINGS
from rowtime.frames.translated import item
from rowtime.frames.values import Value
from rowtime.frames.words import Untranslated
from rowtime.operators.rows.attempt import attempted
from rowtime.runtime.session import derive

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class Compared:
    """What was compared, and how it differs: the expression, the row, the driver's value and Spark's."""

    here: dict[str, Value]  # by text
    differ: list[tuple[Any, ...]] = field(default_factory=list)


def compared(spark: SparkSession, table: pa.Table, kinds: Sequence[tuple[str, str]], texts: Sequence[str]) -> Compared:
    """Compare those of the expressions that the driver computes; the first column of the table numbers its rows.

    A row that fails on the driver is Spark's, so only one that does not fail there is compared.
    """
    frame = LocalFrame.of(spark, table, kinds)
    assert frame is not None
    found = Compared({})
    for text in texts:
        try:
            found.here[text] = item(f"{text} AS x", frame.scope).value
        except Untranslated:
            continue
    spark = _interpreted(spark)
    expected = _in_spark(spark, spark.createDataFrame(table, frame.schema), [*found.here], found)
    rows = table.to_pylist()
    computed = restrict(duckdb.connect(config=SETTINGS))
    computed.register("t", frame._table())
    for text, of in found.here.items():
        if text not in expected:
            continue
        # One by one: a common part of two expressions is computed outside of TRY.
        tried = f"SELECT c0 AS n, TRY(struct_pack(c0 := {of.sql})) AS x FROM t"
        one = computed.sql(f"SELECT x IS NOT NULL AS x, x.c0 AS v FROM ({tried}) ORDER BY n").to_arrow_table()
        for row, value, wanted in zip(rows, _counted(one).to_pylist(), expected[text], strict=True):
            if value["x"] and (wanted is None or _plain(value["v"]) != _plain(wanted["c0"])):
                found.differ.append((text, row, value["v"], "fails" if wanted is None else wanted["c0"]))
    return found


def _interpreted(spark: SparkSession) -> SparkSession:
    """Return a session that compiles nothing: thousands of expressions are computed for a few rows each."""
    session = derive(spark)
    session.conf.set("spark.sql.codegen.wholeStage", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return session


def _in_spark(spark: SparkSession, rows: DataFrame, texts: Sequence[str], found: Compared) -> dict[str, list[Any]]:
    """Return the values by text; note texts that Spark refuses, and other types."""
    number = rows.columns[0]
    try:
        attempts = (attempted(spark, [text]) for text in texts)
        tried = rows.select(number, *(one.alias(f"x{n}") for n, one in enumerate(attempts)))
        kinds = [of.dataType.fields[0].dataType.simpleString() for of in tried.schema.fields[1:]]
        parts = (part for n in range(len(texts)) for part in (f"x{n} IS NOT NULL AS x{n}", f"x{n}.c0 AS v{n}"))
        counted = _counted(tried.selectExpr(number, *parts).toArrow()).to_pylist()
    except PySparkException as refused:
        if len(texts) == 1:
            found.differ.append((texts[0], None, found.here[texts[0]].type, f"refused: {str(refused)[:200]}"))
            return {}
        half = len(texts) // 2
        return {
            part: of
            for some in (texts[:half], texts[half:])
            for part, of in _in_spark(spark, rows, some, found).items()
        }
    for text, kind in zip(texts, kinds, strict=True):
        if found.here[text].type not in ("void", kind) and not _same_type(found.here[text].type, kind):
            found.differ.append((text, None, found.here[text].type, f"the type {kind}"))
    values = sorted(counted, key=lambda row: row[number])
    return {text: [{"c0": row[f"v{n}"]} if row[f"x{n}"] else None for row in values] for n, text in enumerate(texts)}


def _same_type(ours: str, theirs: str) -> bool:
    return spark_type(ours).simpleString() == theirs


def _counted(rows: pa.Table) -> pa.Table:
    """Times as numbers: some lie outside of Python's calendar."""
    for n, column in enumerate(rows.schema):
        if pa.types.is_temporal(column.type):
            number = pa.int32() if pa.types.is_date(column.type) else pa.int64()
            rows = rows.set_column(n, column.name, rows.column(n).cast(number))
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(of) for name, of in value.items()}
    if isinstance(value, list):
        return [_plain(of) for of in value]
    return ("NaN" if math.isnan(value) else value + 0.0) if isinstance(value, float) else value
