"""Write the tables of options into the pages of docs/ from what the formats declare, or check that they are there.

A table is between ``<!-- options FORMAT WHAT -->`` and ``<!-- end of options -->``. WHAT is ``source``, ``sink`` or
``all`` for the options with a meaning here, ``passed`` for those that are passed on, ``refused`` for those without
effect. A format ``registry`` has the options of a schema registry, ``table:delta`` those of a static table.

    python scripts/option_tables.py            # write them (make options)
    python scripts/option_tables.py --check    # say which pages are out of date
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from rowtime.plan.formats import FORMATS, TABLES
from rowtime.plan.formats.contract import Format, Option, options_of, values_of
from rowtime.plan.formats.registry import OPTIONS, PREFIX

DOCS: Final = Path(__file__).parents[1] / "docs"
MARKED: Final = re.compile(r"^<!-- options (\S+) (\S+) -->\n.*?^<!-- end of options -->$", re.MULTILINE | re.DOTALL)


def format_of(name: str) -> Format:
    """Return the format that a mark names."""
    if name == "registry":
        return Format(name, options_of(*OPTIONS))
    return TABLES[name.removeprefix("table:")] if name.startswith("table:") else FORMATS[name]


def table(name: str, what: str) -> str:
    """Return one table, as Markdown."""
    form = format_of(name)
    if what == "passed":
        return _passed(form)
    if what == "refused":
        return _refused(form)
    shown = [one for one in [*form.options.values(), *form.open] if one.meaning and not one.because]
    shown = [one for one in shown if name == "registry" or not one.name.startswith(PREFIX)]
    if what == "all":
        both = [(f"`{one.name}`", one.side or "both", _values(one), one.default, one.meaning) for one in shown]
        return _table(("option", "side", "values", "default", "meaning"), both)
    rows = [
        (f"`{one.name}`", _values(one, what), _part(one.default, what), _part(one.meaning, what))
        for one in shown
        if one.side in ("", what)
    ]
    return _table(("option", "values", "default", "meaning"), rows)


def _part(text: str, side: str) -> str:
    """Return the part of a text for one side (``source: …; sink: …``), or all of it."""
    parts = dict(part.split(": ", 1) for part in text.split("; ")) if text.startswith("source: ") else {}
    return parts.get(side, text)


def _values(option: Option, side: str = "") -> str:
    accepts = option.values or values_of(option.takes)
    if option.written is None or side == "source":
        return accepts
    written = values_of(option.written)
    return written if side == "sink" else f"{accepts}; a sink only {written}"


def _passed(form: Format) -> str:
    by_values: dict[tuple[str, str], list[str]] = {}
    for option in form.options.values():
        if not option.meaning and not option.because:
            accepts = "any text" if option.takes("") == option.takes("?") == option.takes("no value") == "" else ""
            written = f"; a sink only {values_of(option.written)}" if option.written else ""
            key = f"{accepts or values_of(option.takes)}{written}", ""
            by_values.setdefault(key, []).append(f"`{option.name}`")
    rows = [(values, ", ".join(names)) for (values, _), names in by_values.items()]
    return f"Passed on to {form.passed}:\n\n{_table(('values', 'options'), rows)}"


def _refused(form: Format) -> str:
    by_reason: dict[str, list[str]] = {}
    for option in form.options.values():
        if option.because:
            alike = f" (except {' and '.join(f'`{one}`' for one in option.alike)})" if option.alike else ""
            by_reason.setdefault(option.because, []).append(f"`{option.name}`{alike}")
    rows = [(", ".join(names), reason) for reason, names in by_reason.items()]
    return f"Refused (R542), because they have no effect:\n\n{_table(('options', 'why'), rows)}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: str) -> str:
    r"""Return a cell of a table: the two spellings of a line break, the character and ``\n``, look the same."""
    return text.replace("|", r"\|").replace("\n", r"\n").replace(r"\n or \n", r"`\n`")


def written(page: str) -> str:
    """Return a page with its tables as they are declared."""

    def fresh(found: re.Match[str]) -> str:
        name, what = found[1], found[2]
        return f"<!-- options {name} {what} -->\n\n{table(name, what)}\n\n<!-- end of options -->"

    return MARKED.sub(fresh, page)


def main(arguments: list[str]) -> int:
    """Write the pages, or check them. Return 1 if a page is out of date."""
    pages: Mapping[Path, str] = {path: path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md"))}
    changed = {path: text for path, old in pages.items() if (text := written(old)) != old}
    if "--check" in arguments:
        for path in changed:
            print(f"{path.relative_to(DOCS.parent)} is out of date: run make options.")
        return 1 if changed else 0
    for path, text in changed.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
