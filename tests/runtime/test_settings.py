"""No setting of the user's Spark application changes the results of a pipeline."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import rowtime as rt
from rowtime.runtime.session import _CONF, PASSED, active, derive

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

CHANGED = {
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.execution.arrow.useLargeVarTypes": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
    "spark.sql.avro.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.binaryOutputStyle": "HEX",
    "spark.sql.columnNameOfCorruptRecord": "other",
    "spark.sql.error.messageFormat": "MINIMAL",
    "spark.sql.sources.default": "json",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ColumnPruning",
    "spark.sql.files.ignoredPathSegmentRegex": "x",
}


@contextmanager
def told(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """The settings of the application, as ``--conf`` gives them: each new session begins with them."""
    conf: Any = spark.sparkContext._jsc.sc().conf()
    before = {key: conf.get(key) if conf.contains(key) else None for key in settings}
    for key, value in settings.items():
        conf.set(key, value)
    try:
        yield
    finally:
        for key, was in before.items():
            if was is None:
                conf.remove(key)
            else:
                conf.set(key, was)


def switches(spark: SparkSession) -> dict[str, str]:
    """All boolean settings of Spark's SQL, also internal ones, with the opposite value."""
    settings: Any = getattr(spark._jvm, "org.apache.spark.sql.internal.SQLConf$")
    known = getattr(settings, "MODULE$").getConfigEntries().toArray()
    other = {"true": "false", "false": "true"}
    found = {entry.key(): other[text] for entry in known if (text := entry.defaultValueString()) in other}
    return {key: value for key, value in found.items() if key.startswith("spark.sql.") and spark.conf.isModifiable(key)}


def of_this_spark(spark: SparkSession) -> dict[str, str]:
    """The settings that this version has."""
    found = {key: value for key, value in CHANGED.items() if spark.conf.isModifiable(key)}
    assert len(found) > len(CHANGED) - 4
    return found


def test_every_setting_that_could_change_a_value_is_sparks_own(spark: SparkSession) -> None:
    settings = {**switches(spark), **of_this_spark(spark)}
    mine = [key for key in settings if not key.startswith(PASSED)]
    assert len(mine) > 300
    plain = derive(spark)
    with told(spark, settings):
        assert spark.newSession().conf.get("spark.sql.caseSensitive") == "true", "a session begins with them"
        derived = derive(spark)
    assert {key: derived.conf.get(key) for key in mine} == {key: plain.conf.get(key) for key in mine}
    assert {key: derived.conf.get(key) for key in _CONF} == dict(_CONF)


@pytest.mark.parametrize("key", ["spark.sql.autoBroadcastJoinThreshold", "spark.sql.catalog.mine"])
def test_settings_of_speed_and_catalogs_are_kept(spark: SparkSession, key: str) -> None:
    with told(spark, {key: "12345"}):
        assert derive(spark).conf.get(key).startswith("12345")


def test_derived_sessions_share_one_python_daemon(spark: SparkSession) -> None:
    """A daemon takes a second and 50 MB, and stays until Spark ends."""

    def daemons() -> list[int]:
        java: Any = spark._jvm.java.lang.ProcessHandle.current()
        children = java.children().toArray()
        return [child.pid() for child in children if "pyspark.daemon" in str(child.info().commandLine())]

    found = []
    for _ in range(3):
        derive(spark).range(1).mapInArrow(lambda batches: batches, "id BIGINT").collect()
        found.append(daemons())
    assert found[0]
    assert found == [found[0]] * 3


def test_a_thread_has_its_own_session_again_after_a_tick(spark: SparkSession) -> None:
    """Spark parses `TIMESTAMP` by the settings of the thread's session, so a tick has to set it."""
    mine, ours = spark.newSession(), derive(spark)
    mine.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")

    def read() -> str:
        return ours.read.schema("t TIMESTAMP").csv([]).schema["t"].dataType.typeName()

    with active(mine):
        assert read() == "timestamp_ntz"
        with suppress(KeyError), active(ours):
            assert read() == "timestamp"
            raise KeyError
        assert read() == "timestamp_ntz"


def results(spark: SparkSession, folder: Path) -> dict[str, pa.Table]:
    sql = """CREATE STREAM a (k STRING, v INT, d DATE, t TIMESTAMP);
        CREATE PUMP p AS INSERT INTO o SELECT STREAM k, v, d, t, CAST(t AS STRING) AS s, date_trunc('DAY', t) AS y,
          make_timestamp(2024, 1, 31, 1, 2, 3) AS m, CAST('2024-01-01 01:02:03' AS TIMESTAMP) AS c,
          LAG(t) OVER (PARTITION BY k) AS l FROM a;
        CREATE PUMP q AS INSERT INTO g SELECT STREAM FLOOR(a.ROWTIME TO MINUTE) AS n, d, MAX(t) AS t FROM a
          GROUP BY FLOOR(a.ROWTIME TO MINUTE), d"""
    found: dict[str, list[pa.Table]] = {"o": [], "g": []}
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    for name, tables in found.items():
        pipeline.sink(name, lambda batch, tables=tables: tables.append(batch.table()) if batch.count else None)
    for stream in pipeline.compile().defines:
        pipeline.home.define(stream.name, stream.as_json(), replace=True)
    for n in range(2):
        at = f"2024-01-01 10:0{n}:00"
        with rt.writer("a", home=folder / "home") as log:
            log.insert([{"rowtime": at, "k": "x", "v": n, "d": dt.date(1500, 1, 1), "t": at}])
        pipeline.run_available(folder / "check")
    with rt.writer("a", home=folder / "home") as log:
        log.end()
    pipeline.run_available(folder / "check")
    return {name: pa_concat(tables) for name, tables in found.items()}


def pa_concat(tables: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(tables)


@pytest.mark.slow
def test_values_and_types_are_the_same_under_other_settings(spark: SparkSession, tmp_path: Path) -> None:
    plain = results(spark, tmp_path / "plain")
    with told(spark, of_this_spark(spark)):
        mine = spark.newSession()
        mine.conf.get("spark.sql.timestampType")  # it has the settings from here on
    with active(mine):
        changed = results(mine, tmp_path / "changed")
    assert plain["o"].num_rows == 2
    assert plain["g"].num_rows == 2
    for name, table in plain.items():
        assert changed[name].schema == table.schema
        assert changed[name].equals(table)
