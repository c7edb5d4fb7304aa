"""The tutorial is correct: its commands run in order in an empty folder, with the output that the page shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.page_blocks import Block, blocks_of
from tests.docs.shell import Shell, met

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"


def blocks() -> list[Block]:
    return blocks_of(PAGE.read_text(encoding="utf-8"))


def followed(found: Iterator[Block], shell: Shell, kind: str) -> int:
    """Run the blocks of a kind; return how many of them are shown with output."""
    compared, said = 0, list[str]()
    for block in found:
        if block.kind == kind:
            said = shell(block.text)
        elif block.kind == "text":
            met(block.text, said)
            compared += 1
    return compared


def test_the_commands_of_the_tutorial_say_what_it_shows(tmp_path: Path) -> None:
    upto = [one.kind for one in blocks()].index("sh docker")
    assert followed(iter(blocks()[:upto]), Shell(tmp_path), "sh") >= 8
