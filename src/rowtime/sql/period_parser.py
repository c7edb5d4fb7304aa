"""Parses the period predicates of SQL:2011: ``PERIOD (a, b) CONTAINS c``, ``LIFETIME(s) OVERLAPS LIFETIME(t)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import TokenType, exp

from rowtime.core.columns import LIFETIME_END, LIFETIME_START
from rowtime.sql import nodes
from rowtime.sql.call_parser import CallParser
from rowtime.sql.nodes import Lifetime, Period
from rowtime.sql.places import locate

PREDICATES = ("CONTAINS", "OVERLAPS", "EQUALS", "PRECEDES", "SUCCEEDS")
IMMEDIATE = ("PRECEDES", "SUCCEEDS")


class PeriodParser(CallParser):
    """Parses periods and their predicates."""

    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr | None]]] = {
        **CallParser.FUNCTION_PARSERS,
        "PERIOD": lambda self: self._parse_period(),
        "CLIP": lambda self: self._parse_clip(),
        "LIFETIME": lambda self: self._parse_lifetime(),
        "LIFETIME_START": lambda self: self._parse_lifetime(LIFETIME_START),
        "LIFETIME_END": lambda self: self._parse_lifetime(LIFETIME_END),
    }

    def _parse_period(self) -> nodes.Period:
        first, start = self._prev, self._parse_disjunction()
        end = self._parse_disjunction() if self._match(TokenType.COMMA) else None
        if start is None or end is None:
            self.raise_error("a period needs a start and an end, as in PERIOD (a, b)")
        period = self.expression(nodes.Period(this=start, expression=end))
        locate(period, first, self._prev)
        return period

    def _parse_clip(self) -> exp.Anonymous:
        """Parse ``CLIP(s, AT MOST interval)``, ``CLIP(s, WITHIN PERIOD (a, b))`` or ``CLIP(s, t, k WHERE …)``."""
        call = self.expression(exp.Anonymous(this="CLIP", expressions=self._parse_csv(self._parse_clip_argument)))
        if self._match(TokenType.WHERE):
            call.set("where", self._parse_disjunction())
        return call

    def _parse_clip_argument(self) -> exp.Expr | None:
        first = self._curr
        if self._match_text_seq("AT", "MOST"):
            limit: exp.Expr = self.expression(nodes.AtMost(this=self._parse_bitwise()))
        elif self._match_text_seq("WITHIN"):
            period = self._parse_bitwise()
            if not isinstance(period, nodes.Period):
                self.raise_error("WITHIN needs a period, as in WITHIN PERIOD (a, b)")
            limit = self.expression(nodes.WithinPeriod(this=period))
        else:
            return self._parse_lambda()
        locate(limit, first, self._prev)
        return limit

    def _parse_lifetime(self, which: str = "") -> exp.Expr:
        first, name = self._prev, self._parse_id_var()
        if name is None:
            self.raise_error("LIFETIME needs the name of an input, as in LIFETIME(s)")
        node = nodes.LifetimeEdge(this=name, which=which) if which else nodes.Lifetime(this=name)
        lifetime = self.expression(node)
        locate(lifetime, first, self._prev)
        return lifetime

    def _parse_range(self, this: exp.Expr | None = None, *args: Any, **options: Any) -> exp.Expr | None:
        before = self._curr
        this = this or self._parse_bitwise()
        if not isinstance(this, nodes.Period | nodes.Lifetime):
            return super()._parse_range(this, *args, **options)
        how = self._parse_how()
        second = self._parse_bitwise()
        point = how == "CONTAINS" and second is not None
        if not point and not isinstance(second, nodes.Period | nodes.Lifetime):
            self.raise_error(f"{how} needs a period, as in PERIOD (a, b) or LIFETIME(s)")
        predicate = self.expression(nodes.PeriodPredicate(this=this, expression=second, how=how))
        locate(predicate, before, self._prev)
        if predicate.find(nodes.Lifetime):
            return predicate
        comparison = exp.Paren(this=compared(predicate))
        locate(comparison, before, self._prev)
        return comparison

    def _parse_how(self) -> str:
        immediately = self._match_text_seq("IMMEDIATELY")
        predicates = IMMEDIATE if immediately else PREDICATES
        if not self._match_texts(predicates):
            listed = ", ".join(predicates)
            self.raise_error(
                f"a period is allowed only in a predicate: {'IMMEDIATELY ' if immediately else ''}{listed}"
            )
        return f"{'IMMEDIATELY ' if immediately else ''}{self._prev.text.upper()}"


def periodic(period: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return the ends of a PERIOD; a time is a period of its own."""
    return (period.this, period.expression) if isinstance(period, Period) else (period, period)


def compared(predicate: exp.Expr, ends: Callable[[exp.Expr], tuple[exp.Expr, exp.Expr]] = periodic) -> exp.Expr:
    """Return a predicate as comparisons (SQL:2011, 8.20); ``ends`` returns the start and end of a side."""
    (start, end), (other_start, other_end) = ends(predicate.this), ends(predicate.expression)

    def less(one: exp.Expr, other: exp.Expr, *, strictly: bool = False) -> exp.Expr:
        return (exp.LT if strictly else exp.LTE)(this=one.copy(), expression=other.copy())

    def same(one: exp.Expr, other: exp.Expr) -> exp.Expr:
        return exp.EQ(this=one.copy(), expression=other.copy())

    point = not isinstance(predicate.expression, Period | Lifetime)
    both = {
        "CONTAINS": (less(start, other_start), less(other_end, end, strictly=point)),
        "OVERLAPS": (less(start, other_end, strictly=True), less(other_start, end, strictly=True)),
        "EQUALS": (same(start, other_start), same(end, other_end)),
    }
    if predicate.args["how"] in both:
        lower, upper = both[predicate.args["how"]]
        return exp.And(this=lower, expression=upper)
    single = {
        "PRECEDES": less(end, other_start),
        "SUCCEEDS": less(other_end, start),
        "IMMEDIATELY PRECEDES": same(end, other_start),
        "IMMEDIATELY SUCCEEDS": same(start, other_end),
    }
    return single[predicate.args["how"]]
