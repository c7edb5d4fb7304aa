"""Expression nodes that rowtime's SQL has and sqlglot does not.

Beside these, plain nodes carry a few arguments of ours (``node.args``):

========== ================ ==========================================================
node       argument         meaning
========== ================ ==========================================================
Select     stream           ``True`` after ``SELECT STREAM``
Select     windowed         ``Stagger``: the clause ``WINDOWED BY STAGGER (...)``
query      unbounded_state  ``True`` after ``WITH UNBOUNDED STATE``
query      emit_changes     ``True`` after ``EMIT CHANGES``
query      emit_final       ``Var`` for ``EMIT AFTER WATERMARK`` and its like
query      emit             ``EmitLifetimes``: the clause ``EMIT INTERVALS (...)`` and its like
query      emit_every       the interval of ``EMIT EVERY``
query      keys_expire      the interval of ``KEYS EXPIRE AFTER``
Ordered    within           the interval of ``ORDER BY t WITHIN``
Ordered    early            the interval of ``EARLY BEYOND`` behind it
Ordered    ahead            the interval of ``EARLY BEYOND … AFTER ARRIVAL`` there
Ordered    resync           the number of ``RESYNC AFTER n ROWS`` there
Table,     over             ``exp.Window``: the window of a join input,
Subquery                    ``s OVER (RANGE ...) AS s``
Floor/Ceil to               ``exp.Var``: the unit, in singular and upper case
Anonymous  where            of CLIP: the condition behind its arguments
========== ================ ==========================================================
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot import TokenType, exp

from rowtime.sql.intervals import MICROS, MONTHS

TIME_UNITS = (*MICROS, *MONTHS)
"""Units that FLOOR and CEIL round to, and that intervals count in."""


UNSIGNED_SHIFT = TokenType.COLON_GT
"""The token of ``>>>``: one that Spark's SQL has no other use for."""


class Step(exp.Expression, exp.Func):
    """``STEP(x BY n)``: the greatest multiple of n (from 1970-01-01 UTC) that is <= x."""

    arg_types = {"this": True, "expression": True}
    _sql_names = ["STEP"]


class Monotonic(exp.Expression, exp.Func):
    """``MONOTONIC(e)``: the promise, checked at run time, that e never falls."""

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
    """What the binder knows of a column: no row at a rowtime t, or later, has a value below ``this`` at t."""


class Panes(exp.Expression):
    """``PANES(t, DURATION d, PERIOD p, OFFSET o, DISCARD AGE a)`` in GROUP BY; all but t and d may be left out."""

    arg_types = {"this": True, "duration": True, "period": False, "offset": False, "discard_age": False}


class PaneFact(exp.Expression):
    """``PANE_START``, ``PANE_END``, ``PANE_TIMING`` or ``PANE_INDEX``: a text in ``this``."""


class EmitLifetimes(exp.Expression):
    """``EMIT POINTS|INTERVALS|EDGES (names) [FULLY ORDERED]``; ``this`` is the word as a ``Var``."""

    arg_types = {"this": True, "expressions": False, "fully": False, "chain": False}


class TableArgument(exp.Expression):
    """``TABLE s PARTITION BY keys`` as the argument of a table function; ``this`` is a Table or a Subquery."""

    arg_types = {"this": True, "expressions": False}


class Period(exp.Expression):
    """``PERIOD (this, expression)``: from a time up to another."""

    arg_types = {"this": True, "expression": True}


class AtMost(exp.Expression):
    """``AT MOST this`` in CLIP: how long an event lasts at most."""


class WithinPeriod(exp.Expression):
    """``WITHIN PERIOD (a, b)`` in CLIP: the times that are left of each event; ``this`` is the Period."""


class Lifetime(exp.Expression):
    """``LIFETIME(s)``: the lifetime of the event of an input as a period; ``this`` is the name."""


class LifetimeEdge(exp.Expression):
    """``LIFETIME_START(s)`` or ``LIFETIME_END(s)``; ``this`` is the name, ``which`` the column that stands for it."""

    arg_types = {"this": True, "which": True}


class UnsignedShift(exp.Expression, exp.Binary):
    """``a >>> b``."""


class Worded(exp.Expression, exp.Func):
    """A call or literal of Spark with words of its own: ``this`` is the text, with ``{}`` for each expression."""

    arg_types = {"this": True, "expressions": False}
    _sql_names: ClassVar[list[str]] = []


class PeriodPredicate(exp.Expression, exp.Predicate):
    """A period and another, or a time; ``how``: CONTAINS, OVERLAPS, EQUALS, [IMMEDIATELY] PRECEDES or SUCCEEDS."""

    arg_types = {"this": True, "expression": True, "how": True}


UNTRANSLATED = (
    CurrentRowTimestamp, Within, Stagger, TableArgument, Panes, PaneFact, Period, Lifetime, PeriodPredicate,
    LifetimeEdge, AtMost, WithinPeriod,
)  # fmt: skip
"""Nodes that have no Spark SQL text: binding replaces them."""


ONE_ROW, SHOW_EMPTY, OMIT_EMPTY, WITH_UNMATCHED = (
    "ONE ROW", "SHOW EMPTY MATCHES", "OMIT EMPTY MATCHES", "WITH UNMATCHED ROWS"
)  # fmt: skip
"""What goes out PER MATCH: one row, or all rows in one of three ways."""


class MatchRecognize(exp.Expression):
    """An input ``this MATCH_RECOGNIZE (…) AS alias``; ``rows``: what goes out; ``pattern``: its text, as a ``Var``."""

    arg_types = {
        "this": True, "partition_by": False, "order": False, "measures": False, "rows": False, "skip": False,
        "pattern": True, "within": False, "subsets": False, "define": False, "alias": False,
    }  # fmt: skip


def recognizes(query: exp.Expr) -> bool:
    """True if a SELECT reads the matches of a pattern."""
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
