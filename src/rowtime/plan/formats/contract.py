"""What a format says of its options: which there are, what each takes, which have no effect here.

Names of options mean the same in upper and lower case, as in Spark. An option that no format
knows would be accepted and ignored by Spark; here it is refused, with the nearest name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from zoneinfo import available_timezones

Check = Callable[[str], str]
"""What a value should be, in words, where it is not that; empty where it is."""

MOST_SHOWN: Final = 25  # names in a hint


@dataclass(frozen=True)
class Option:
    """One option: what it takes; ``written``: what it takes where a pump writes, if that is less.

    ``because``: why it has no effect here; then only the values ``alike``, which change nothing, are taken.
    ``meaning``, ``default`` and ``values`` are for the tables of docs/options.md, in Markdown: an option without a
    meaning is passed on, and ``values`` are those of an option that ``takes`` does not check. ``side``: ``source`` or
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
    """The options of a format. ``others``: what is wrong with a name that is not listed, or ``None`` to let it through.

    ``others`` takes the name and all names that are given beside it, in lower case. ``open`` describes the names that
    it lets through, and ``passed`` says to whom options without a meaning are passed on: both are for docs/options.md.
    """

    name: str
    options: Mapping[str, Option]
    others: Callable[[str, Sequence[str]], str | None] | None = None
    open: tuple[Option, ...] = ()
    passed: str = ""

    def option(self, name: str) -> Option | None:
        """An option by its name, in any case."""
        return self.options.get(name.lower())

    def nearest(self, name: str) -> str:
        """A hint: the name that was probably meant, or those that there are."""
        known = [option.name for option in self.options.values() if not option.because]
        spelled = {one.lower(): one for one in known}
        near = difflib.get_close_matches(name.lower(), list(spelled), n=1, cutoff=0.7)
        if near:
            return f"Did you mean {spelled[near[0]]}?"
        shown = f"{', '.join(known[:MOST_SHOWN])}{', …' if len(known) > MOST_SHOWN else ''}"
        return f"There are: {shown}." if known else "Leave it out."


def as_table(form: Format) -> Format:
    """A format whose files or rows are read as a static table, by Spark alone: all of its options have an effect."""
    read = (
        replace(option, takes=anything, because="") if option.because else option for option in form.options.values()
    )
    return replace(form, options=options_of(*read))


def values_of(check: Check) -> str:
    """Describe in words what a check accepts, by values that hardly any check accepts."""
    return next((words for odd in ("", "?", "no value") if (words := check(odd))), "a text")


def options_of(*options: Option) -> dict[str, Option]:
    """Options by their names in lower case."""
    return {option.name.lower(): option for option in options}


def taking(takes: Check, *names: str, written: Check | None = None) -> list[Option]:
    """Options that all take the same."""
    return [Option(name, takes, written) for name in names]


def unused(because: str, *names: str, alike: tuple[str, ...] = ()) -> list[Option]:
    """Options of Spark that have no effect here, all for one reason."""
    return [Option(name, anything, because=because, alike=alike) for name in names]


def words(text: str) -> list[str]:
    """Names that are in a text with blanks between them."""
    return text.split()


# -- values -----------------------------------------------------------------------------


def anything(value: str) -> str:  # noqa: ARG001 - it takes all
    """Every text."""
    return ""


def some(value: str) -> str:
    """A text that is not empty."""
    return "" if value.strip() else "a text"


def boolean(value: str) -> str:
    """``true`` or ``false``, in any case."""
    return "" if value.strip().lower() in ("true", "false") else "true or false"


def whole(least: int = 0, most: int | None = None) -> Check:
    """A whole number."""

    def check(value: str) -> str:
        words = f"a whole number from {least}" + (f" to {most}" if most is not None else "")
        try:
            number = int(value)
        except ValueError:
            return words
        return "" if number >= least and (most is None or number <= most) else words

    return check


def number(value: str) -> str:
    """A decimal number."""
    return "" if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", value.strip()) else "a number"


def one_of(*names: str) -> Check:
    """One of some words, in any case."""
    return lambda value: "" if value.lower() in {name.lower() for name in names} else _either(names)


def character(value: str) -> str:
    """One character, or an escape for one, as that of a tab."""
    return "" if len(value) == 1 or re.fullmatch(r"\\[\\0tbfnr'\"]|\\u[0-9a-fA-F]{4}", value) else "one character"


def characters(value: str) -> str:
    """One character or several, blanks too."""
    return "" if value else "one character or several"


def few_characters(value: str) -> str:
    """One character or none."""
    return "" if not value else character(value)


def pattern(value: str) -> str:
    """A pattern of Spark's for dates and times; letters that mean nothing are in quotes."""
    bare = re.sub(r"'[^']*'", "", value)
    odd = re.search(r"[A-Za-z]", re.sub(r"[GyMLdQqEDFahKkHmsSVzOXx]", "", bare))
    if "'" in bare or odd is not None or not value:
        return "a pattern of dates and times, such as yyyy-MM-dd HH:mm:ss"
    return ""


def zone(value: str) -> str:
    """A time zone by its name, or an offset."""
    fits = re.fullmatch(r"(UTC|GMT|UT|Z)?([+-]\d{1,2}(:?\d{2})?)?", value) or value in available_timezones()
    return "" if value and fits else "a time zone, such as Europe/Berlin or +01:00"


def encoding(value: str) -> str:
    """A character set that Python, and so probably Java, has."""
    try:
        "".encode(value)
    except LookupError:
        return "a character set, such as UTF-8 or ISO-8859-1"
    return ""


def _either(names: Iterable[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
