"""Results as tables of other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rowtime.core.errors import refuse

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa


def in_polars(table: pa.Table) -> pl.DataFrame:
    """Convert an Arrow table to a DataFrame of polars; raises ``Refused`` (R612) if polars is not installed."""
    try:
        import polars as pl  # noqa: PLC0415 - it is optional
    except ModuleNotFoundError as missing:
        what = "to_polars needs the package polars, which is not installed"
        raise refuse(
            "R612", what, "Install it: pip install polars. query.to_pandas(stream) needs nothing more."
        ) from missing
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame
