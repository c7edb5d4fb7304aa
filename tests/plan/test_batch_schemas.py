"""The law of schemas finds a batch with another name, order or type than the compiled one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rowtime.operators.sinks.sink import Sink
from rowtime.plan.program import compile_script
from tests.plan.batch_schemas import misfits

SQL = "CREATE STREAM s (n INT, t STRING, m DECIMAL(10, 2)); SELECT STREAM n, t, m FROM s"
COLUMNS = {"rowtime": pa.timestamp("us", "UTC"), "n": pa.int32(), "t": pa.string(), "m": pa.decimal128(10, 2)}
TYPES = ["INT", "STRING COLLATE UNICODE", "DECIMAL(10, 2)"]


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (COLUMNS, []),
        (COLUMNS | {"n": pa.int64()}, ["query.result sends n as bigint, compiled as int"]),
        (COLUMNS | {"m": pa.decimal128(10, 3)}, ["query.result sends m as decimal(10,3), compiled as decimal(10,2)"]),
        (
            {name: COLUMNS[name] for name in ("rowtime", "t", "n", "m")},
            ["query.result sends ['rowtime', 't', 'n', 'm'], compiled as ['rowtime', 'n', 't', 'm']"],
        ),
    ],
)
def test_another_name_order_or_type_is_found(columns: dict[str, pa.DataType], told: list[str]) -> None:
    [sink] = compile_script(SQL).sinks
    assert isinstance(sink, Sink)
    assert list(misfits(sink, TYPES, pa.schema(list(columns.items())))) == told
