"""Syntax faults: why a parser cannot read a text, in the form that all parsers here use."""

from __future__ import annotations

from typing import Any, NoReturn

from sqlglot import Token
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parsers.spark import SparkParser


class SyntaxFault(ParseError):
    """A parse error at the characters ``start`` to ``end`` (inclusive) of the text; ``hint``: what to write instead."""

    def __init__(self, message: str, start: int, end: int, *, at_end: bool, hint: str = "") -> None:
        super().__init__(message, [{"description": message}])
        self.message = message
        self.start = start
        self.end = end
        self.at_end = at_end  # the text ended, but more was expected
        self.hint = hint


class FaultParser(SparkParser):
    """Raises faults, and remembers the furthest one: tried alternatives hide theirs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "error_level": ErrorLevel.IMMEDIATE})
        self.furthest: SyntaxFault | None = None

    def raise_error(self, message: str, token: Token | None = None, hint: str = "") -> NoReturn:
        """Raise a ``SyntaxFault``; if two are at one place, the one with a hint is kept."""
        at = token or self._curr or self._prev
        start, end = (at.start, at.end) if at else (0, 0)
        fault = SyntaxFault(message, start, end, at_end=not token and not self._curr, hint=hint)
        if self.furthest is None or _reach(fault) > _reach(self.furthest):
            self.furthest = fault
        raise fault


def _reach(fault: SyntaxFault) -> tuple[bool, int, bool]:
    return fault.at_end, fault.start, bool(fault.hint)
