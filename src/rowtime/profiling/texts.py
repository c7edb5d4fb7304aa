"""A profile as text: a table of writers, the curve, the recommendations and the statement."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from rowtime.core.counts import counted
from rowtime.core.time import to_text
from rowtime.operators.contract.lateness import in_words
from rowtime.profiling.pictures import bars

if TYPE_CHECKING:
    from rowtime.profiling.result import Profile

MOST: Final = 10
_WIDTH: Final = 40
_HEADS: Final = ("rows", "first", "last", "late", "p50", "p99", "greatest", "gap")


def as_text(profile: Profile) -> str:
    """Return a profile as the command prints it."""
    return "\n".join(_lines(profile))


def _lines(profile: Profile) -> Iterator[str]:
    facts = profile.facts
    yield f"{profile.name} by {profile.time}: {counted(facts.rows, 'rows')}"
    if not facts.timed:
        yield from (f"! {finding}" for finding in profile.findings)
        yield "no row has a time, so there is nothing to recommend"
        return
    late = facts.late
    ties = f"{facts.ties / facts.timed * 100:.3g} % have the time of the row before"
    yield f"late by one clock: {late.rows:,} rows, at most {in_words(late.greatest)}; {ties}"
    yield ""
    yield from _writers(profile)
    yield ""
    yield "WITHIN (= delay of results) and rows kept"
    yield from bars(profile.points, profile.advice)
    yield ""
    yield from profile.recommendations
    yield from (f"! {finding}" for finding in profile.findings)
    yield ""
    yield profile.statement


def _writers(profile: Profile) -> Iterator[str]:
    """Yield the table of writers, those with the greatest lateness first."""
    rows = profile.writer_rows()
    shown = sorted(rows, key=lambda row: (-row["greatest"], -row["rows"]))[:MOST]
    table = [(profile.column, *_HEADS), *(_cells(row) for row in shown)]
    widths = [max(len(row[n]) for row in table) for n in range(len(table[0]))]
    for row in table:
        first, *others = (f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"{first.strip():<{widths[0]}}  {'  '.join(others)}"
    if len(rows) > len(shown):
        yield f"and {len(rows) - len(shown):,} more, whose rows are less late"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    times = (to_text(row[name]) if row[name] is not None else "" for name in ("first", "last"))
    durations = (in_words(row[name]) if row[name] else "" for name in ("p50", "p99", "greatest", "gap"))
    name = row["writer"] if len(row["writer"]) <= _WIDTH else f"…{row['writer'][-_WIDTH + 1 :]}"
    return (name, f"{row['rows']:,}", *times, f"{row['late']:,}", *durations)
