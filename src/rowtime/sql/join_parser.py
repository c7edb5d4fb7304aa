"""Parses joins: those without a condition of their own, and LEFT ASOF JOIN."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import Token, TokenType, exp

from rowtime.sql.syntax_fault import FaultParser

_UNSAID: Any = object()


class JoinParser(FaultParser):
    """Parses joins in linear time."""

    def reset(self) -> None:
        """Start with other tokens."""
        super().reset()
        self._within: list[str] = []  # the joins and tables that are being parsed
        self._alone: set[int] = set()  # where joins begin that have no ON or USING

    def _parse_join(self, *args: Any, **options: Any) -> exp.Join | None:
        self._within.append("join")
        try:
            return super()._parse_join(*args, **options)
        finally:
            self._within.pop()

    def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
        self._within.append("table")
        try:
            return super()._parse_table(*args, **options)
        finally:
            self._within.pop()

    def _parse_joins(self, alias_tokens: Any = _UNSAID) -> Iterator[exp.Join]:
        """Parse joins; an ON or USING after them may belong to an earlier join without a condition.

        If there is none, they are parsed again as its siblings. Each such place is tried once, not once for every join
        before it.
        """
        if alias_tokens is _UNSAID:
            return super()._parse_joins()
        if self._within[-1:] != ["join"]:
            return super()._parse_joins(alias_tokens=alias_tokens)
        place, joins = self._index, []
        while self._index not in self._alone and (join := self._parse_join(alias_tokens=alias_tokens)):
            joins.append(join)
        if self._index not in self._alone and self._curr.token_type in (TokenType.ON, TokenType.USING):
            return iter(joins)
        self._alone.add(place)
        return iter(())

    def _parse_join_parts(self) -> tuple[Token | None, Token | None, Token | None]:
        """Parse LEFT ASOF JOIN, Calcite's spelling, besides ASOF LEFT JOIN."""
        left = self._curr
        if self._match_pair(TokenType.LEFT, TokenType.ASOF):
            return self._prev, left, None
        return super()._parse_join_parts()
