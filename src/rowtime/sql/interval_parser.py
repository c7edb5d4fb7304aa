"""Parses interval literals with their precision, and the unit after a difference of times: ``(a - b) MINUTE``."""

from __future__ import annotations

import re
from typing import Any

from sqlglot import Token, TokenType, exp

from rowtime.sql.intervals import MICROS, MONTHS, singular, span_of
from rowtime.sql.places import locate
from rowtime.sql.syntax_fault import FaultParser

_COMPOUND = re.compile(r"\d[ :-]+\d")
_DAY_TIME = ("DAY", "HOUR", "MINUTE", "SECOND")
_FIELDS = re.compile(r"\s*[+-]?\s*0*(\d*).*?(?:\.(\d*?)0*)?\s*", re.DOTALL)
_MOST = 9  # the greatest precision, in digits


class IntervalParser(FaultParser):
    """Parses SQL intervals; a precision is a promise about the digits: it is checked and dropped."""

    INTERVAL_SPANS = False  # _parse_interval_span reads TO

    def _parse_interval(self, *args: Any, **options: Any) -> exp.Add | exp.Interval | None:
        first = self._curr
        interval = super()._parse_interval(*args, **options)
        if interval is not None:
            locate(interval, first, self._prev)
            self._check_interval(interval, first)
        return interval

    def _parse_required_interval(self) -> exp.Expr:
        interval = self._parse_interval()
        if interval is None:
            self.raise_error("an interval is expected, for example INTERVAL '10' SECOND")
        return interval

    def _parse_interval_span(self, this: exp.Expr, *_args: Any, **_options: Any) -> exp.Interval:
        """Read ``'1:30' MINUTE TO SECOND(3)``, but leave the TO of ``FLOOR(t + INTERVAL '1' DAY TO HOUR)``."""
        interval = super()._parse_interval_span(this, parse_function_unit=False)
        if interval.args.get("unit") is None:
            return interval
        amount = interval.this.this if isinstance(interval.this, exp.Neg) else interval.this
        text = amount.name if isinstance(amount, exp.Literal) else ""
        self._parse_precision(interval.args["unit"].name, text, leads=True)
        if _COMPOUND.search(text) and self._match_text_seq("TO"):
            last = self._parse_var(any_token=True, upper=True)
            interval.set("unit", self.expression(exp.IntervalSpan(this=interval.args["unit"], expression=last)))
            self._parse_precision(last.name if last else "", text, leads=False)
        return interval

    def _parse_precision(self, unit: str, text: str, *, leads: bool) -> None:
        """Parse ``(4)`` after a unit, or ``(2, 3)`` after SECOND: the greatest number of digits of an amount."""
        if not self._match(TokenType.L_PAREN):
            return
        first, unit, sizes = self._prev, singular(unit), [self._precision()]
        if self._match(TokenType.COMMA):
            sizes.append(self._precision())
        self._match_r_paren()
        fraction = unit == "SECOND" and (len(sizes) > 1 or not leads)
        if len(sizes) > (2 if unit == "SECOND" and leads else 1) or not (leads or fraction):
            self.raise_error(f"{unit} has no such precision here", first, hint=f"Leave the precision of {unit} out.")
        match = _FIELDS.fullmatch(text)
        whole, after = (match[1], match[2] or "") if match and text else ("", "")
        if (leads and len(whole) > sizes[0]) or (fraction and len(after) > sizes[-1]):
            least = ", ".join(str(n) for n in _least(whole, after, leads=leads, fraction=fraction))
            hint = f"Write {unit}({least}), or leave the precision out."
            self.raise_error(f"'{text}' has more digits than its precision allows", first, hint=hint)

    def _precision(self) -> int:
        text = self._curr.text if self._curr else ""
        if not text.isdecimal() or not 0 <= int(text) <= _MOST:
            self.raise_error(f"a precision must be a number of digits from 0 to {_MOST}")
        self._advance()
        return int(text)

    def _check_interval(self, interval: exp.Expr, first: Token) -> None:
        for unit in interval.find_all(exp.Var):
            unit.set("this", singular(unit.name))
        if isinstance(interval, exp.Interval) and not isinstance(interval.this, exp.Literal):
            return  # an amount computed at run time: Spark checks it
        try:
            span_of(interval)
        except ValueError as wrong:
            self.raise_error(str(wrong), first)

    # Units after a difference

    def _parse_paren(self) -> exp.Expr | None:
        first, node = self._curr, super()._parse_paren()
        if not isinstance(node, exp.Paren) or not isinstance(node.this, exp.Sub):
            return node
        return self._in_unit(node, first) if self._is_unit_behind() else node

    def _is_unit_behind(self) -> bool:
        """Return True if a unit follows that is not the name of an item: ``(a - b) second, …`` is a name in Spark."""
        if self._curr is None or singular(self._curr.text) not in (*MICROS, *MONTHS):
            return False
        if self._curr.token_type == TokenType.IDENTIFIER or self._next is None:
            return False
        behind = self._next
        alias_ends = (TokenType.COMMA, TokenType.FROM, TokenType.SEMICOLON)
        return behind.token_type not in alias_ends and self._index + 1 < len(self._tokens)

    def _in_unit(self, difference: exp.Paren, first: Token) -> exp.Expr:
        unit = self._curr
        units = [singular(unit.text)]
        self._advance()
        self._parse_precision(units[0], "", leads=True)
        if self._match_text_seq("TO"):
            units.append(singular(self._curr.text if self._curr else ""))
            self._advance()
            self._parse_precision(units[1], "", leads=False)
        places = [_DAY_TIME.index(one) if one in _DAY_TIME else -1 for one in units]
        if -1 in places or places != sorted(set(places)):
            hint = "Write DAY, HOUR, MINUTE or SECOND, or DAY TO SECOND; MONTHS_BETWEEN(a, b) counts months."
            self.raise_error("a difference of times is an interval of days, hours, minutes and seconds", unit, hint)
        kind = exp.DataType.build(f"INTERVAL {' TO '.join(units)}", dialect="spark")
        cast = self.expression(exp.Cast(this=difference.this, to=kind))
        locate(cast, first, self._prev)
        return cast


def _least(whole: str, after: str, *, leads: bool, fraction: bool) -> tuple[int, ...]:
    return (*((max(len(whole), 1),) if leads else ()), *((len(after),) if fraction else ()))
