"""Records of Kafka that are decoded outside of Spark have the rows that Spark gives, and all others are Spark's."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rowtime.core.columns import POSITION, WRITER
from rowtime.runtime.local_rows import fields_of, read
from rowtime.runtime.sources import json_decoding
from rowtime.runtime.sources.contract import Scan
from rowtime.runtime.sources.kafka_decoding import PlainRecords, records_of
from rowtime.runtime.sources.kafka_rows import BOUND_HEADER, RECORD, STRICT_HEADER, json_items, values_of
from tests.runtime.decoded_files import utc
from tests.runtime.test_json_decoding import COLUMNS, TOKENS, UNITS, WHOLE, record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
HEADERS: tuple[list[tuple[str, bytes]] | None, ...] = (
    [(BOUND_HEADER, b"2024-01-01T00:00:00Z")],
    [(BOUND_HEADER, b"2024-01-01T00:00:00Z"), (STRICT_HEADER, b"true")],
    [(BOUND_HEADER, b"no time")],
    [(BOUND_HEADER, b"end")],
    [("other", b"1")],
    [],
    None,
)


def topic(spark: SparkSession) -> DataFrame:
    """Three partitions with plain and other records, bounds, and records without a value."""
    lines = [record(name, token) for name, tokens in TOKENS.items() for token in tokens]
    texts = [text.replace("{good}", record()) if isinstance(text, str) else text for text in WHOLE]
    values = [one.encode() if isinstance(one, str) else one for one in (*lines, *texts)]
    rows: list[Any] = [(None, value, "t", n % 3, n, AT, []) for n, value in enumerate(values)]
    good = record().encode()
    rows += [(None, value, "u/v", 123456, n, AT, h) for n, h in enumerate(HEADERS) for value in (None, good, b"x")]
    return spark.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, kind in RECORD.items()))


@pytest.mark.parametrize("rowtime", [None, "ev", "ms", "i", "other"])
def test_records_have_the_rows_that_spark_gives(
    spark: SparkSession, rowtime: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_decoding, "_TRIES", 10_000)
    monkeypatch.setattr(json_decoding, "_FEW", 1)
    session, columns = utc(spark), list(COLUMNS.items())
    records = topic(session)
    whole = json_items(records, columns, rowtime, options=UNITS)
    plain = PlainRecords.of(columns, rowtime, UNITS)
    if rowtime == "i":  # a BIGINT, and not read as one
        assert plain is None
        return
    assert plain is not None
    left: list[pa.Table] = []

    def rest(table: pa.Table) -> DataFrame:
        left.append(table)
        return json_items(records_of(session, table), columns, rowtime, options=UNITS)

    scan = Scan(values_of(records), plain, rest, lambda: whole)
    assert fields_of(scan) == fields_of(Scan(whole))
    rows, rest_of_them = plain.decoded(scan.rows.toArrow())
    assert 150 < rows.num_rows < whole.count() * 0.9
    found = pa.concat_tables([rows, rest(rest_of_them).toArrow().cast(rows.schema)])
    assert in_order(found) == in_order(whole.toArrow())
    assert len(left) == 1


def in_order(rows: pa.Table) -> list[str]:
    for nth, field in enumerate(rows.schema):
        if pa.types.is_temporal(field.type):  # a time may be too late for Python
            number = pa.int32() if pa.types.is_date(field.type) else pa.int64()
            rows = rows.set_column(nth, field.name, rows.column(nth).cast(number))
    return [repr(row) for row in sorted(rows.to_pylist(), key=lambda row: (row[WRITER], row[POSITION], repr(row)))]


def test_a_bad_record_leaves_few_others_to_spark(spark: SparkSession) -> None:
    session, columns = utc(spark), [("i", "BIGINT")]
    rows: list[Any] = [
        (None, b'{"i": %d}' % n if n % 997 else b'{"i": "x"}', "t", 0, n, AT, []) for n in range(1, 25_000)
    ]
    records = session.createDataFrame(rows, ", ".join(f"{name} {kind}" for name, kind in RECORD.items()))
    plain = PlainRecords.of(columns, None, {})
    assert plain is not None
    _, rest = plain.decoded(values_of(records).toArrow())
    bad = range(997, 25_000, 997)
    assert {*bad} <= {*rest[POSITION].to_pylist()}
    assert rest.num_rows <= 16 * len(bad)
    scan = Scan(values_of(records), plain, lambda table: json_items(records_of(session, table), columns, None))
    assert in_order(read(scan)) == in_order(json_items(records, columns, None).toArrow())
