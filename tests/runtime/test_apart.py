"""Rows that are split have the values that Spark gave them."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from rowtime.frames.frame import Frame
from rowtime.frames.kinds import type_text
from rowtime.frames.tables import handed_out
from rowtime.runtime.refusal import apart

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_struct_may_be_null_whose_fields_are_never_null(spark: SparkSession) -> None:
    """Arrow refused the column, and the run ended."""
    given = spark.sql(
        "SELECT IF(id = 1, NULL, NAMED_STRUCT('d', 1.5BD)) AS x, IF(id = 2, 'wrong', NULL) AS __broken,"
        " TIMESTAMP '2024-01-01' AS __t, 'w' AS __w, id AS __p FROM RANGE(3)"
    )
    fields = [(field.name, type_text(field.dataType)) for field in given.schema]
    rows = apart(Frame.of(spark, handed_out(given), fields), "__broken")
    assert [row.x and row.x["d"] for row in rows.accepted.collect()] == [Decimal("1.5"), None]
    assert rows.counts == {"in": 3, "accepted": 2, "MALFORMED": 1}
    assert rows.refused is not None
    assert [row.raw_record for row in rows.refused.rows.collect()] == ["wrong"]  # type: ignore[union-attr]
