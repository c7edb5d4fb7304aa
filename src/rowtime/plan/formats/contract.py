"""A format's options: their names and values, and which have no effect here.

Names of options mean the same in upper and lower case, as in Spark. Spark would accept and ignore an unknown option;
rowtime refuses it, with the nearest name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from zoneinfo import available_timezones

from rowtime.core.time_patterns import PatternFault, parts_of

Check = Callable[[str], str]
"""Returns what a value should be, in words, if it is not; empty if it is."""

_PATTERN: Final = "a pattern of dates and times, such as yyyy-MM-dd HH:mm:ss"
MOST_SHOWN: Final = 25  # names in a hint


@dataclass(frozen=True)
class Option:
    """One option: the values it takes; ``written``: those for a stream to which a pump writes, if fewer.

    ``because``: why it has no effect here; then only the values ``alike``, which change nothing, are accepted.
    ``meaning``, ``default`` and ``values`` are for the tables of docs/options.md, in Markdown: an option without a
    meaning is passed on, and ``values`` describes an option that ``takes`` does not check. ``side``: ``source`` or
    ``sink`` if the option has a meaning only there.
    """

    name: str
    takes: Check
    written: Check | None = None
    because: str = ""
    alike: tuple[str, ...] = ()
    meaning: str = ""
    default: str = ""
    values: str = ""
    side: str = ""


@dataclass(frozen=True)
class Format:
    """The options of a format. ``others`` judges names that are not listed: a problem, or ``None`` to let them through.

    ``others`` takes the name and all names that are given beside it, in lower case. ``open`` describes the names that
    it lets through, and ``passed`` says to whom options without a meaning are passed on: both are for docs/options.md.
    """

    name: str
    options: Mapping[str, Option]
    others: Callable[[str, Sequence[str]], str | None] | None = None
    open: tuple[Option, ...] = ()
    passed: str = ""

    def option(self, name: str) -> Option | None:
        """Return an option by its name, in any case."""
        return self.options.get(name.lower())

    def nearest(self, name: str) -> str:
        """Return a hint with the name that was probably meant, or with all names."""
        names = [option.name for option in self.options.values() if not option.because]
        spelled = {option_name.lower(): option_name for option_name in names}
        near = difflib.get_close_matches(name.lower(), list(spelled), n=1, cutoff=0.7)
        if near:
            return f"Did you mean {spelled[near[0]]}?"
        shown = f"{', '.join(names[:MOST_SHOWN])}{', …' if len(names) > MOST_SHOWN else ''}"
        return f"There are: {shown}." if names else "Leave it out."


def as_table(form: Format) -> Format:
    """Return a format as a static table that Spark alone reads: all of its options have an effect."""
    read = (
        replace(option, takes=anything, because="") if option.because else option for option in form.options.values()
    )
    return replace(form, options=options_of(*read))


def values_of(check: Check) -> str:
    """Describe in words the values that a check accepts, found with values that hardly any check accepts."""
    return next((words for odd in ("", "?", "no value") if (words := check(odd))), "a text")


def options_of(*options: Option) -> dict[str, Option]:
    """Return options by their lower-case names."""
    return {option.name.lower(): option for option in options}


def taking(takes: Check, *names: str, written: Check | None = None) -> list[Option]:
    """Return options that all take the same values."""
    return [Option(name, takes, written) for name in names]


def unused(because: str, *names: str, alike: tuple[str, ...] = ()) -> list[Option]:
    """Return options of Spark that have no effect here, all for one reason."""
    return [Option(name, anything, because=because, alike=alike) for name in names]


def words(text: str) -> list[str]:
    """Split a text with names at its blanks."""
    return text.split()


# -- values -----------------------------------------------------------------------------


def anything(value: str) -> str:  # noqa: ARG001 - it accepts everything
    """Accept every text."""
    return ""


def some(value: str) -> str:
    """Accept a text that is not empty."""
    return "" if value.strip() else "a text"


def boolean(value: str) -> str:
    """Accept ``true`` or ``false``, in any case."""
    return "" if value.strip().lower() in ("true", "false") else "true or false"


def whole(least: int = 0, most: int | None = None) -> Check:
    """Accept a whole number."""

    def check(value: str) -> str:
        words = f"a whole number from {least}" + (f" to {most}" if most is not None else "")
        try:
            number = int(value)
        except ValueError:
            return words
        return "" if number >= least and (most is None or number <= most) else words

    return check


def number(value: str) -> str:
    """Accept a decimal number."""
    return "" if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", value.strip()) else "a number"


def one_of(*names: str) -> Check:
    """Accept one of some words, in any case."""
    return lambda value: "" if value.lower() in {name.lower() for name in names} else _either(names)


def character(value: str) -> str:
    """Accept one character, or an escape for one, such as that of a tab."""
    return "" if len(value) == 1 or re.fullmatch(r"\\[\\0tbfnr'\"]|\\u[0-9a-fA-F]{4}", value) else "one character"


def characters(value: str) -> str:
    """Accept one character or several, blanks too."""
    return "" if value else "one character or several"


def few_characters(value: str) -> str:
    """Accept one character or none."""
    return "" if not value else character(value)


def pattern(value: str) -> str:
    """Accept Spark's patterns for dates and times; letters without a meaning are in quotes."""
    try:
        return "" if parts_of(value) else _PATTERN
    except PatternFault as fault:
        return f"{_PATTERN}: {fault}"


def zone(value: str) -> str:
    """Accept a time zone by its name, or an offset."""
    fits = re.fullmatch(r"(UTC|GMT|UT|Z)?([+-]\d{1,2}(:?\d{2})?)?", value) or value in available_timezones()
    return "" if value and fits else "a time zone, such as Europe/Berlin or +01:00"


def encoding(value: str) -> str:
    """Accept a character set that Python has, and so probably Java."""
    try:
        "".encode(value)
    except LookupError:
        return "a character set, such as UTF-8 or ISO-8859-1"
    return ""


def _either(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
