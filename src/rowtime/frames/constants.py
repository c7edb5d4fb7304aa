"""The value of a query over constants, computed without Spark, or in a task by asking it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from rowtime.frames.answers import ANSWERS
from rowtime.frames.frame import Frame
from rowtime.frames.queries import Uncomputed
from rowtime.frames.words import Untranslated
from rowtime.sql.generate import to_spark

_NO_SESSION: Any = None


def value_of(query: str, session: Any = _NO_SESSION) -> int | None:
    """Return the value of ``SELECT expression FROM (SELECT …)``; ``None`` if it has no translation.

    ``session``: that of the tick. A process without one asks Spark (`frames.answers`); a real one folds constants.
    """
    row = row_of(query, session)
    value = None if row is None else row.column(0)[0].as_py()
    return value if isinstance(value, int) else None


def row_of(query: str, session: Any = _NO_SESSION) -> pa.Table | None:
    """Return the row of such a query, of any number of expressions."""
    try:
        return _rows(parse_one(query, dialect="spark"), _NO_SESSION if ANSWERS.get() is None else session).toArrow()
    except (Untranslated, Uncomputed, SqlglotError):
        return None


def _rows(query: exp.Expr, session: Any) -> Frame:
    """Return the row of a query, whose innermost FROM is missing."""
    source = query.args.get("from_") or query.args.get("from")
    inner = Frame(session, [("__present", "int")], pa.table({"c0": pa.array([1], pa.int32())}))
    if source is not None:
        inner = _rows(source.this.this, session)
    named = (
        one if one.alias or isinstance(one, exp.Column) else exp.alias_(one, "__value") for one in query.expressions
    )
    return inner.valued([*map(to_spark, named)])
