"""The syntax boxes on the pages agree with the parser: each optional part is parsed with and without it.

In a box ``[x]`` is optional, ``{x | y}`` is a choice, and ``, …`` repeats the part before it. Words in capitals and
signs stand for themselves; words in small letters stand for parts that are described elsewhere. A line that begins with
a blank continues the line above. The word after ``syntax`` names the statement that the part belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rowtime.sql.script import parse_script

ROOT = Path(__file__).parents[2]
PAGES = ("docs/sql.md", "docs/panes.md", "docs/lifetimes.md", "docs/windows.md")
SIGN = re.compile(r"\s*('[^']*'|…|>=|[\[\]{}|(),=*.@]|\w+)")
QUERY = "SELECT STREAM a FROM s"
WITHIN = {
    "": "{}",
    "column": "CREATE STREAM s ({})",
    "event_time": "CREATE STREAM s (t TIMESTAMP) EVENT TIME ({})",
    "event_shape": "CREATE STREAM s (t TIMESTAMP, u TIMESTAMP, k STRING) EVENT SHAPE {}",
    "input": "SELECT STREAM a FROM {}",
    "join": "SELECT STREAM a FROM {}",
    "clauses": "SELECT STREAM a FROM s {}",
    "expression": "SELECT STREAM {} FROM s",
    "group": "SELECT STREAM a FROM s GROUP BY {}",
    "emit": "SELECT STREAM a FROM s {}",
}
"""A statement around the part that a box shows."""
SAMPLES = {
    "name": "n",
    "schema": "app",
    "stream": "s",
    "view": "v",
    "pump": "p",
    "column": "a",
    "parameter": "x",
    "type": "STRING",
    "collation": "UNICODE_CI",
    "column_definition": "a INT NOT NULL",
    "server": "FILE_SERVER",
    "wrapper": "w",
    "format": "csv",
    "option": "path",
    "interval": "INTERVAL '1' MINUTE",
    "timestamp": "TIMESTAMP '2024-01-01 10:00:00'",
    "n": "3",
    "percent": "10",
    "value": "7",
    "condition": "a > 1",
    "expression": "a",
    "aggregate": "SUM(a)",
    "time": "t",
    "query": QUERY,
    "event_time": "t, LAG INTERVAL '1' MINUTE",
    "event_shape": "POINT (t)",
    "unit": "SECONDS",
    "input": "s AS x",
    "window": "PARTITION BY a ROWS 3 PRECEDING",
    "frame_end": "3 PRECEDING",
    "start": "t",
    "end": "u",
    "kind": "k",
    "edge": "e",
    "stop": "x",
    "size": "INTERVAL '1' HOUR",
    "slide": "INTERVAL '5' MINUTE",
    "step": "INTERVAL '5' MINUTE",
    "gap": "INTERVAL '5' MINUTE",
    "length": "INTERVAL '1' MINUTE",
    "offset": "INTERVAL '5' MINUTE",
    "hop": "INTERVAL '5' MINUTE",
    "longest": "INTERVAL '1' DAY",
}


@dataclass(frozen=True)
class Part:
    """A part of a box: ``kind`` is a terminal, an option or a choice; ``text`` is that of a terminal."""

    kind: str
    text: str = ""
    choices: tuple[tuple[Part, ...], ...] = ()


def boxes() -> list[tuple[str, str, str]]:
    """The page, the statement of the box, and each line of the box with its continuations."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for box in re.finditer(r"^```syntax ?(\w*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
            lines = re.sub(r"\n +", " ", box[2]).strip().split("\n")
            found += [(page, box[1], line) for line in lines if line]
    return found


def parts_of(signs: list[str], closes: str = "") -> tuple[tuple[Part, ...], ...]:
    """The choices up to the closing sign; removes the signs."""
    choices: list[list[Part]] = [[]]
    while signs and signs[0] != closes:
        sign = signs.pop(0)
        if sign == "|":
            choices.append([])
        elif sign in "[{":
            inner = parts_of(signs, "]" if sign == "[" else "}")
            choices[-1].append(Part("option" if sign == "[" else "choice", "", inner))
        elif sign == "…":
            choices[-1].append(Part("again"))
        else:
            choices[-1].append(Part("terminal", SAMPLES[sign] if sign[0].islower() else sign))
    if closes:
        assert signs, f"no {closes}"
        signs.pop(0)
    return tuple(map(tuple, choices))


def written(parts: tuple[Part, ...], wanted: Part | None, choice: int = 0, *, everything: bool = False) -> list[str]:
    """The words of parts; optional parts are included only if they contain ``wanted``."""
    words: list[str] = []
    item: list[str] = []
    for part in parts:
        if part.kind == "again":
            last = words.pop()  # the comma
            words += [last, *item] if everything else []
            continue
        before, item = item, []
        if part.kind == "terminal":
            item = [part.text] if part.text != "," else before
            words.append(part.text)
            continue
        if part.kind == "option" and not (everything or part == wanted or contains(part, wanted)):
            item = before
            continue
        index = choice if part == wanted else next(
            (n for n, one in enumerate(part.choices) if any(p == wanted or contains(p, wanted) for p in one)), 0
        )  # fmt: skip
        item = written(part.choices[index], wanted, choice, everything=everything)
        words += item
    return words


def contains(part: Part, wanted: Part | None) -> bool:
    return wanted is not None and any(p == wanted or contains(p, wanted) for one in part.choices for p in one)


def expansions(line: str) -> Iterator[str]:
    """Texts that match a line of a box."""
    signs = SIGN.findall(line)
    assert "".join(signs) == re.sub(r"\s", "", line), "a sign that no box has"
    [parts] = parts_of(signs)
    yield " ".join(written(parts, None))
    yield " ".join(written(parts, None, everything=True))
    for part in parted(parts):
        for choice in range(len(part.choices)):
            yield " ".join(written(parts, part, choice))


def parted(parts: tuple[Part, ...]) -> Iterator[Part]:
    """Every optional part and choice, also nested ones."""
    for part in parts:
        if part.kind in ("option", "choice"):
            yield part
            for choice in part.choices:
                yield from parted(choice)


def refused(within: str, line: str) -> list[str]:
    return [
        text
        for part in dict.fromkeys(expansions(line))
        if parse_script(text := WITHIN[within].format(part) + ";").problems
    ]


@pytest.mark.parametrize(("page", "within", "line"), boxes())
def test_every_form_that_a_box_shows_is_parsed(page: str, within: str, line: str) -> None:
    assert refused(within, line) == [], page


def test_there_are_boxes_for_the_statements_and_clauses() -> None:
    starts = {" ".join(re.findall(r"[A-Z]+", line)[:2]) for _, within, line in boxes() if not within}
    assert {"CREATE OR", "ALTER STREAM", "ALTER VIEW", "ALTER PUMP", "INSERT INTO", "EXPLAIN PLAN"} <= starts
    assert {within for _, within, _ in boxes()} >= set(WITHIN) - {"clauses", "emit"}


def test_optional_parts_and_choices_are_expanded_with_and_without() -> None:
    found = set(expansions("DROP { STREAM | VIEW } [IF EXISTS [NOT]] name, …"))
    assert found == {
        "DROP STREAM n",
        "DROP STREAM IF EXISTS NOT n , n",
        "DROP VIEW n",
        "DROP STREAM IF EXISTS n",
        "DROP STREAM IF EXISTS NOT n",
    }


@pytest.mark.parametrize(
    "line",
    ["ALTER STREAM stream SET ROWTIME BOUND timestamp [STRICTLY]", "CREATE { STREAM | RIVER } name ( column type )"],
)
def test_a_form_that_is_not_sql_is_noticed(line: str) -> None:
    assert refused("", line)
