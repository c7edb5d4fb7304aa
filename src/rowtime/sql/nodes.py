"""Expression nodes of rowtime's SQL that sqlglot does not have.

In addition, sqlglot's nodes carry a few arguments of rowtime (``node.args``):

========== ================ ========================================================== node argument meaning ==========
================ ========================================================== Select stream ``True`` after ``SELECT
STREAM`` Select windowed ``Stagger``: the clause ``WINDOWED BY STAGGER (...)`` query unbounded_state ``True`` after
``WITH UNBOUNDED STATE`` query emit_changes ``True`` after ``EMIT CHANGES`` query emit_final ``Var`` for ``EMIT AFTER
WATERMARK`` and its like query emit ``EmitLifetimes``: the clause ``EMIT INTERVALS (...)`` and its like query emit_every
the interval of ``EMIT EVERY`` query keys_expire the interval of ``KEYS EXPIRE AFTER`` Ordered within the interval of
``ORDER BY t WITHIN`` Ordered early the interval of ``EARLY BEYOND`` behind it Ordered ahead the interval of ``EARLY
BEYOND … AFTER ARRIVAL`` there Ordered resync the number of ``RESYNC AFTER n ROWS`` there Table, over ``exp.Window``:
the window of a join input, Subquery ``s OVER (RANGE ...) AS s`` Floor/Ceil to ``exp.Var``: the unit, in singular and
upper case Anonymous where of CLIP: the condition behind its arguments ========== ================
==========================================================
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import TokenType, exp

from rowtime.sql.intervals import MICROS, MONTHS

TIME_UNITS = (*MICROS, *MONTHS)
"""Units of FLOOR, CEIL and intervals."""


UNSIGNED_SHIFT = TokenType.COLON_GT
"""The token of ``>>>``: one that Spark's SQL does not use otherwise."""


class Step(exp.Expression, exp.Func):
    """``STEP(x BY n)``: the greatest multiple of n (from 1970-01-01 UTC) that is <= x."""

    arg_types = {"this": True, "expression": True}
    _sql_names = ["STEP"]


class Monotonic(exp.Expression, exp.Func):
    """``MONOTONIC(e)``: a promise, checked at run time, that e never falls."""

    _sql_names = ["MONOTONIC"]


class CurrentRowTimestamp(exp.Expression, exp.Func):
    """``CURRENT_ROW_TIMESTAMP``: the recorded arrival time of the row."""

    arg_types = {}
    _sql_names = ["CURRENT_ROW_TIMESTAMP"]


class Within(exp.Expression):
    """A GROUP BY key on a time out of order: ``FLOOR(t TO MINUTE) WITHIN interval``."""

    arg_types = {"this": True, "interval": True}


class Stagger(exp.Expression):
    """``WINDOWED BY STAGGER (PARTITION BY keys RANGE interval)``."""

    arg_types = {"expressions": True, "interval": True}


class Earliest(exp.Expression, exp.Func):
    """A fact of the binder about a column: no row at a rowtime t, or later, has a value below ``this`` at t."""


class Windowed(exp.Expression, exp.Func):
    """A fact of the binder about an edge of the windows of ``time``, whose end is ``end``.

    No later row has an edge below ``this``, a function of the rowtime, if ``time`` is the rowtime. ``lost``: the rows
    no longer have the columns of ``time`` and ``end``.
    """

    arg_types = {"this": True, "time": True, "end": True, "lost": False}


class IfGiven(exp.Expression, exp.Func):
    """A fact of the binder about a column: it is ``this``, a function of the rowtime, or NULL."""


class Before(exp.Expression, exp.Func):
    """The last instant before ``this``, a rowtime of rows that are stamped with the end of the group that made them."""


class Panes(exp.Expression):
    """``PANES(t, DURATION d, PERIOD p, OFFSET o, DISCARD AGE a)`` in GROUP BY; all but t and d may be left out."""

    arg_types = {"this": True, "duration": True, "period": False, "offset": False, "discard_age": False}


class PaneFact(exp.Expression):
    """``PANE_START``, ``PANE_END``, ``PANE_TIMING`` or ``PANE_INDEX``: its name as a text in ``this``."""


class EmitLifetimes(exp.Expression):
    """``EMIT POINTS|INTERVALS|EDGES (names) [FULLY ORDERED]``; ``this`` is the word as a ``Var``."""

    arg_types = {"this": True, "expressions": False, "fully": False, "chain": False}


class TableArgument(exp.Expression):
    """``TABLE s PARTITION BY keys`` as the argument of a table function; ``this`` is a Table or a Subquery."""

    arg_types = {"this": True, "expressions": False}


class Period(exp.Expression):
    """``PERIOD (this, expression)``: from a time to another one, exclusive."""

    arg_types = {"this": True, "expression": True}


class AtMost(exp.Expression):
    """``AT MOST this`` in CLIP: how long an event lasts at most."""


class WithinPeriod(exp.Expression):
    """``WITHIN PERIOD (a, b)`` in CLIP: the part of each event that is kept; ``this`` is the Period."""


class Lifetime(exp.Expression):
    """``LIFETIME(s)``: the lifetime of an input's event as a period; ``this`` is the name."""


class LifetimeEdge(exp.Expression):
    """``LIFETIME_START(s)`` or ``LIFETIME_END(s)``; ``this`` is the name, ``which`` the column that holds it."""

    arg_types = {"this": True, "which": True}


class UnsignedShift(exp.Expression, exp.Binary):
    """``a >>> b``."""


class Worded(exp.Expression, exp.Func):
    """A Spark call or literal with words of its own: ``this`` is the text, with ``{}`` for each expression."""

    arg_types = {"this": True, "expressions": False}
    _sql_names: ClassVar[list[str]] = []


class PeriodPredicate(exp.Expression, exp.Predicate):
    """A predicate on two periods, or a period and a time; ``how``: CONTAINS, OVERLAPS, [IMMEDIATELY] PRECEDES, …."""

    arg_types = {"this": True, "expression": True, "how": True}


UNTRANSLATED = (
    CurrentRowTimestamp, Within, Stagger, TableArgument, Panes, PaneFact, Period, Lifetime, PeriodPredicate,
    LifetimeEdge, AtMost, WithinPeriod,
)  # fmt: skip
"""Nodes that have no Spark SQL text: the binder replaces them."""


ONE_ROW, SHOW_EMPTY, OMIT_EMPTY, WITH_UNMATCHED = (
    "ONE ROW", "SHOW EMPTY MATCHES", "OMIT EMPTY MATCHES", "WITH UNMATCHED ROWS"
)  # fmt: skip
"""The output PER MATCH: one row, or all rows in one of three ways."""


class MatchRecognize(exp.Expression):
    """An input ``this MATCH_RECOGNIZE (…) AS alias``; ``rows``: its output; ``pattern``: its text, as a ``Var``."""

    arg_types = {
        "this": True, "partition_by": False, "order": False, "measures": False, "rows": False, "skip": False,
        "pattern": True, "within": False, "subsets": False, "define": False, "alias": False,
    }  # fmt: skip


def recognizes(query: exp.Expr) -> bool:
    """An input ``this MATCH_RECOGNIZE (…) AS alias``; ``rows``: output per match; ``pattern``: its text, a ``Var``."""
    source = query.args.get("from_")
    return source is not None and isinstance(source.this, MatchRecognize)


class SkipTo(exp.Expression):
    """Where the next match may begin: ``past``, ``next``, or ``first`` or ``last`` of the variable ``to``."""

    arg_types = {"this": True, "to": False}


class Subset(exp.Expression):
    """A name for several variables: ``this = (expressions)``."""

    arg_types = {"this": True, "expressions": True}


class MatchScope(exp.Expression):
    """``FINAL`` or ``RUNNING`` (``kind``) before a call."""

    arg_types = {"this": True, "kind": True}
