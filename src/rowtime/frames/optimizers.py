"""The steps of DuckDB's optimizer that may run: those that never change which rows fail.

`i + 1 > 0` fails for the greatest INT. DuckDB would compare `i` with another constant, find that two conditions
contradict each other, or that `i + 1` is never NULL; and nothing would fail. Because one failing row sends its tick to
Spark, such a step makes rows depend on each other. So each step is off unless it is listed here, and so is each that a
later version adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import duckdb

SAFE: Final[Mapping[str, str]] = {
    "unused_columns": "It drops columns that nobody reads, as Spark does, and keeps all others.",
    "column_lifetime": "It drops columns after their last use, when they are computed.",
    "build_side_probe_side": "It chooses which side of a join is hashed; the condition is computed for the same pairs.",
}
"""Steps that stay on, each with the reason why no row fails less often. Without them, wide rows and joins are slow."""


def restrict(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Turn off all other steps, for all connections to the same database."""
    names = [name for (name,) in connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()]
    connection.execute(f"SET disabled_optimizers = '{','.join(name for name in names if name not in SAFE)}'")
    return connection
