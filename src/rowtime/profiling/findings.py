"""Findings of a profile in words: what is wrong with times or clocks, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

from rowtime.core.counts import counted
from rowtime.operators.contract.lateness import in_words, interval
from rowtime.profiling.advice import own_helps, rows_that
from rowtime.profiling.facts import Facts

DECLARE = (
    "Give each its own clock: a stream (a folder, a topic) or a writer of a stream for each and UNION ALL, a Kafka "
    "partition for each, or pipeline.source(…, writer='{column}', position=…)"
)


def findings(facts: Facts, column: str) -> Iterator[str]:
    """Yield a sentence about each thing that is remarkable; ``column`` names the clocks of their own."""
    yield from _times(facts)
    if facts.lone:
        longest = in_words(max(leap.length for leap in facts.lone))
        yield (
            f"{rows_that(len(facts.lone), 'lies', 'lie')} up to {longest} above the rows before and after: without a "
            "guard such a row makes those after it late"
        )
    if facts.ahead.rows:
        yield (
            f"{rows_that(facts.ahead.rows, 'has', 'have')} a time after the arrival, by up to "
            f"{in_words(facts.ahead.greatest)}"
        )
    for hours, rows in facts.merged.clock.hours.peaks.items():
        yield (
            f"{rows_that(rows, 'is', 'are')} late by {counted(hours, 'hours')} within a minute, many more than by a "
            "little less or more: a clock may be in another time zone, or was set back"
        )
    if facts.duplicates:
        about = "" if facts.exact else "about "
        yield f"{about}{rows_that(facts.duplicates, 'repeats', 'repeat')} the writer, time and key of an earlier one"
    if (better := own_helps(facts)) is not None:
        one, own = better
        yield (
            f"with one clock for each {column}, WITHIN {interval(own.within)} keeps 99.9 % of the rows; with one clock "
            f"for all, {interval(one.within)}. {DECLARE.format(column=column)}"
        )


def _times(facts: Facts) -> Iterator[str]:
    if facts.bad:
        yield f"{rows_that(facts.bad, 'does', 'do')} not decode, or not keep a rule of the stream (MALFORMED)"
    if facts.nulls:
        yield f"{rows_that(facts.nulls, 'has', 'have')} no time (NULL_ROWTIME)"
    if facts.outside:
        yield f"{rows_that(facts.outside, 'has', 'have')} a time outside of the years 0001 to 9999 (NULL_ROWTIME)"
    if facts.odd:
        yield f"{rows_that(facts.odd, 'has', 'have')} a time before 1971 or after 2099: a wrong unit, or no value"
