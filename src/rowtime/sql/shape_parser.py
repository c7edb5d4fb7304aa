"""Parses lifetimes in statements: ``EVENT SHAPE`` of a stream, and ``EMIT`` of a query's events."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from rowtime.core.shapes import STRICT, EventShape
from rowtime.sql.column_parser import RESOLUTIONS, ColumnParser
from rowtime.sql.intervals import Duration, span_of
from rowtime.sql.nodes import EmitLifetimes

_COLUMNS = {"POINT": (1, 1), "INTERVAL": (2, 2), "EDGE": (2, 2), "BY": (2, 2)}


class ShapeParser(ColumnParser):
    """Parses the parts of statements that concern lifetimes."""

    def _event_shape(self) -> EventShape:
        """Parse the text after the words EVENT SHAPE."""
        if not self._match_texts(tuple(_COLUMNS)):
            self.raise_error("an event shape is POINT (start), INTERVAL (start, end), EDGE (start, end) or BY kind (…)")
        kind: Any = self._prev.text.upper()
        by = self._name_part(any_token=True) if kind == "BY" else None
        names = self._column_names()
        least, most = _COLUMNS[kind]
        if not least <= len(names) <= most:
            self.raise_error(f"the shape {kind} has {most} column{'s' * (most > 1)} in parentheses")
        start, stop = names[0], names[1] if len(names) > 1 else None
        resolution = None
        if self._match_text_seq("RESOLUTION"):
            if not self._match_texts(RESOLUTIONS):
                self.raise_error(f"RESOLUTION must be one of {', '.join(RESOLUTIONS[::2])}")
            resolution = self._prev.text.upper().removesuffix("S")
        return EventShape(kind, start, stop, by, **self._advances(), resolution=resolution)

    def _advances(self) -> dict[str, Any]:
        """Parse ON LATE, BOUND EVERY and BOUND FROM, in any order."""
        clauses: dict[str, Any] = {}
        while True:
            if "adjusts" not in clauses and self._match_text_seq("ON", "LATE"):
                if not self._match_texts(("DROP", "ADJUST")):
                    self.raise_error("ON LATE takes DROP or ADJUST")
                clauses["adjusts"] = self._prev.text.upper() == "ADJUST"
            elif "imports" not in clauses and self._match_text_seq("BOUND", "FROM"):
                clauses |= {"imports": self._name_part(any_token=True), "import_delay": self._delay()}
            elif "delay" not in clauses and self._match_text_seq("BOUND", "EVERY"):
                clauses |= self._bound_every()
            else:
                alone = "delay" not in clauses and "imports" in clauses
                return {**clauses, "delay": clauses["import_delay"], "import_delay": 0} if alone else clauses

    def _bound_every(self) -> dict[str, Any]:
        clauses: dict[str, Any] = {}
        if self._curr and self._curr.text.isdecimal():
            at = self._curr
            clauses["rows"] = self._row_count()
            if not clauses["rows"]:
                self.raise_error("BOUND EVERY takes at least one row", at)
        else:
            at = self._curr
            clauses["every"] = self._micros()
            if clauses["every"] <= 0:
                self.raise_error("BOUND EVERY takes a time above zero", at)
        return {**clauses, "delay": self._delay()}

    def _delay(self) -> int:
        """Return a delay in µs; negative for a strict bound."""
        if self._match_text_seq("STRICT"):
            return STRICT
        if not self._match_text_seq("DELAY"):
            return 0
        at, delay = self._curr, self._micros()
        if delay < 0:
            self.raise_error("a delay must not be negative", at, hint="Write STRICT for a bound just above the start.")
        return delay

    def _micros(self) -> int:
        at = self._curr
        span = span_of(self._parse_required_interval())
        if not isinstance(span, Duration):
            self.raise_error("months have no fixed length", at)
        return span.micros

    def _emit(self) -> exp.Expr | None:
        """Parse ``EMIT POINTS|INTERVALS|EDGES|LIFETIMES …`` after the last clause of a query."""
        for word in ("POINTS", "INTERVALS", "EDGES"):
            if self._match_text_seq("EMIT", word):
                names = self._column_names()
                fully = self._match_text_seq("FULLY", "ORDERED")
                chain = not fully and self._match_text_seq("CHAIN", "ORDERED")
                return EmitLifetimes(
                    this=exp.var(word), expressions=[exp.to_identifier(n) for n in names], fully=fully, chain=chain
                )
        return None
