"""Rows with those marked that are refused: they raise nothing."""

from __future__ import annotations

import pyarrow as pa

from rowtime.core.columns import POSITION, REFUSED, WRITER
from rowtime.frames.frame import Frame
from rowtime.operators.contract import Operator, Tick


def refused_marked(tick: Tick, stream: Operator, rows: Frame, refused: pa.Table) -> Frame:
    """Return the rows of a stream, with refused ones marked."""
    places = pa.table({"__from": refused[WRITER], "__at": refused[POSITION]})
    key = tick.frame(stream, places).selectExpr("*", f"true AS {REFUSED}")
    return rows.joined(key, f"{WRITER} = __from AND {POSITION} = __at", "left").drop("__from", "__at")
