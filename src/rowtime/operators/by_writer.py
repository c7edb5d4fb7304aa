"""Times of writers beside their rows: a literal for few writers, a table for many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from rowtime.operators.contract import W, micros
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FEW = 64  # writers that a literal tells apart; it is searched from its beginning for every row


def beside(rows: DataFrame, times: Mapping[str, int], name: str) -> DataFrame:
    """The rows with a column TIMESTAMP: what ``times`` (µs UTC) says of their writer, NULL where it says nothing."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    if len(times) <= FEW:
        cases = " ".join(f"WHEN {literal(writer)} THEN {micros(at)}" for writer, at in sorted(times.items()))
        found = f"CASE {W} {cases} END" if cases else "CAST(NULL AS TIMESTAMP)"
        return rows.withColumn(name, F.expr(found))
    columns = {"__who": pa.array(times.keys()), name: pa.array(times.values(), pa.timestamp("us", "UTC"))}
    table = F.broadcast(rows.sparkSession.createDataFrame(pa.table(columns)))
    return rows.join(table, F.expr(f"{W} = __who"), "left").drop("__who")
