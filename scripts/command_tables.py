"""Write the reference of the commands into docs/cli.md from the command line itself, or check that it is there.

It is between ``<!-- commands -->`` and ``<!-- end of commands -->``: for each command its usage, what it does, and its
arguments and options.

    python scripts/command_tables.py            # write it (make options)
    python scripts/command_tables.py --check    # say whether the page is out of date
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import typer

from rowtime.cli.main import app

PAGE: Final = Path(__file__).parents[1] / "docs/cli.md"
MARKED: Final = re.compile(r"^<!-- commands -->\n.*?^<!-- end of commands -->$", re.MULTILINE | re.DOTALL)


def commands() -> dict[str, Any]:
    """Return the commands by name, in the order of `rowtime --help`."""
    group: Any = typer.main.get_command(app)
    return dict(group.commands)


def section(name: str, command: Any) -> Iterator[str]:
    """Yield the paragraphs of one command."""
    context = command.make_context(f"rowtime {name}", [], resilient_parsing=True)
    yield f"## rowtime {name}"
    yield f"```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```"
    yield from (_text(" ".join(paragraph.split())) for paragraph in command.help.split("\n\n"))
    rows = [row for one in command.params for row in _row(one, context)]
    yield "\n".join(f"| {' | '.join(cells)} |" for cells in [("argument or option", "meaning"), ("---", "---"), *rows])


def _row(one: Any, context: Any) -> Iterator[tuple[str, str]]:
    """Yield the row of an argument or option, unless it is hidden."""
    record = one.get_help_record(context)
    if record is None:
        return
    meaning = re.sub(r"\s*\[(required|x[<>]=?\d+|\d+<=x<=\d+)\]$", "", " ".join(record[1].split()))
    name = re.sub(r" <[^|]*>$", "", record[0]) if one.param_type_name == "argument" else record[0]
    yield f"`{' '.join(name.split())}`".replace("|", r"\|"), _text(meaning)


def _text(words: str) -> str:
    """Return words of a help text as Markdown: what looks like a tag or a cell is none."""
    return words.replace("<", "&lt;").replace("|", r"\|")


def written(page: str) -> str:
    """Return the page with the commands as they are."""
    text = "\n\n".join(paragraph for name, command in commands().items() for paragraph in section(name, command))
    return MARKED.sub(lambda _: f"<!-- commands -->\n\n{text}\n\n<!-- end of commands -->", page)


def main(arguments: list[str]) -> int:
    """Write the page, or check it. Return 1 if it is out of date."""
    old = PAGE.read_text(encoding="utf-8")
    new = written(old)
    if "--check" in arguments and new != old:
        print(f"docs/{PAGE.name} is out of date: run make options.")
        return 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
