"""The fenced blocks of a page, and what is written below them: the rows, output and refusals of a run."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
WIDTH: Final = 100  # characters of a line
_FENCED: Final = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
_MADE: Final = re.compile(r"^\n```text (?:rows|refused|output)\n(?:.*\n)*?```\n", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: the words after the fence, its text, and where it ends in the page."""

    kind: str
    text: str
    end: int


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in their order."""
    return [Block(match[1], match[2], match.end()) for match in _FENCED.finditer(page)]


def bare(page: str) -> str:
    """Return a page without what is written into it."""
    return _MADE.sub("", page)


def written(page: str, outputs: Mapping[int, str]) -> str:
    """Return a page with these outputs; each comes after the block of that number."""
    page = bare(page)
    ends = [block.end for block in blocks_of(page)]
    for number in sorted(outputs, reverse=True):
        page = f"{page[: ends[number]]}\n\n{outputs[number].rstrip()}{page[ends[number] :]}"
    return page


def fence(kind: str, text: str) -> str:
    """Return a block of ``rows``, ``refused`` or ``output``."""
    return f"```text {kind}\n{text}\n```\n"


def wrapped(message: str) -> str:
    """Return a message with lines of a readable length; the line of SQL and its mark stay."""
    return "\n".join(
        line if re.match(r" *\d* *\| ", line) else textwrap.fill(line, WIDTH, break_long_words=False)
        for line in message.splitlines()
    )
