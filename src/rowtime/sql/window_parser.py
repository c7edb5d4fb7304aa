"""Parses windows: of calls, ``OVER w``, ``OVER (w ROWS 9 PRECEDING)`` and ``OVER w (…)``, and of join inputs."""

from __future__ import annotations

from typing import Any

from sqlglot import TokenType, exp

from rowtime.sql.places import extend, locate
from rowtime.sql.syntax_fault import FaultParser


class WindowParser(FaultParser):
    """Parses windows; the window of an input is before its name or after it."""

    def _parse_window(self, *args: Any, **options: Any) -> exp.Expr | None:
        """Parse a window; a frame with a lower end alone ends at the row, and a call before OVER at its bracket."""
        call = args[0] if args else None
        if isinstance(call, exp.Func) and call.meta.get("start") is not None and self._prev.text == ")":
            extend(call, self._prev)
        window = super()._parse_window(*args, **options)
        if isinstance(window, exp.Window) and window.args.get("over") and self._named_alone(window):
            self._parse_more(window)
        frame = window.args.get("spec") if isinstance(window, exp.Window) else None
        if frame is not None and not frame.args.get("end"):
            frame.set("end", "CURRENT ROW")
        return window

    def _named_alone(self, window: exp.Window) -> bool:
        """Return True for ``OVER w`` with a parenthesis after it."""
        parts = ("partition_by", "order", "spec")
        bare = bool(window.alias) and not any(window.args.get(part) for part in parts) and self._prev.text != ")"
        return bare and self._match(TokenType.L_PAREN, advance=False) is True

    def _parse_more(self, window: exp.Window) -> None:
        """Parse ``OVER w (RANGE …)`` as ``OVER (w RANGE …)``; SQLstream writes it so."""
        more = super()._parse_window(exp.Var(this="w"), alias=True)
        if not isinstance(more, exp.Window) or more.alias:
            self.raise_error(
                "a window can refer to only one other window",
                hint="Write OVER (w RANGE …) with one name at the beginning.",
            )
        for part in ("partition_by", "order", "spec"):
            window.set(part, more.args.get(part))

    # Inputs

    def _parse_table_parts(self, *args: Any, **options: Any) -> exp.Table | exp.Dot | None:
        table = super()._parse_table_parts(*args, **options)
        self._parse_input_window(table)
        return table

    def _parse_table(self, *args: Any, **options: Any) -> exp.Expr | None:
        table = super()._parse_table(*args, **options)
        self._parse_input_window(table)
        return table

    def _parse_subquery(self, this: exp.Expr | None, *args: Any, **options: Any) -> exp.Subquery | None:
        held = exp.Table()  # the window is before the name, and the node is built with it
        if this:
            self._parse_input_window(held)
        subquery = super()._parse_subquery(this, *args, **options)
        if subquery and held.args.get("over"):
            subquery.set("over", held.args["over"])
        return subquery

    def _parse_input_window(self, source: exp.Expr | None) -> None:
        """Parse ``s OVER (RANGE …)``, ``s OVER w``, ``s OVER w (…)``: sqlglot's window of a function, on an input."""
        first = self._curr
        named = self._next is not None and self._next.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        opens = self._match_pair(TokenType.OVER, TokenType.L_PAREN, advance=False)
        if source is None or source.args.get("over") or not (opens or (named and self._is_over())):
            return
        window = self._parse_window(exp.Var(this="ROWS"))
        if window:
            locate(window, first, self._prev)
            source.set("over", window)

    def _is_over(self) -> bool:
        return self._match(TokenType.OVER, advance=False) is True
