"""The tutorial is true: its commands run in their order in an empty folder, and say what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"


class Block(NamedTuple):
    """A fenced block: what stands behind the fence, and the text."""

    kind: str
    text: str


def blocks() -> list[Block]:
    found = re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [Block(match[1], match[2]) for match in found]


class Shell:
    """A shell whose folder stays from command to command, with the commands of this environment first."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._left = folder, folder.with_name("left")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {key: value for key, value in os.environ.items() if key != "ROWTIME_HOME"} | {"PATH": path}

    def __call__(self, commands: str) -> list[str]:
        ended = subprocess.run(
            ["bash", "-e", "-c", f"{commands}\npwd >{self._left}"], cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert ended.returncode == 0, f"{commands}{ended.stdout}"
        self.folder = Path(self._left.read_text(encoding="utf-8").strip())
        return ended.stdout.splitlines()


def met(shown: str, said: list[str]) -> None:
    """Each line that the page shows is said, in this order; an ellipsis stands for anything."""
    left = iter(said)
    for line in shown.splitlines():
        pattern = ".*".join(re.escape(part) for part in line.split("…"))
        assert any(re.fullmatch(pattern, one) for one in left), f"{line}\nis not said in\n{said}"


def followed(found: Iterator[Block], shell: Shell, kind: str) -> int:
    """Run the blocks of a kind; how many of them are shown with what they say."""
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
