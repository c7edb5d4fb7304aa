"""A golden file holds the public names and signatures, and the commands with their options.

``make goldens`` writes the file again. Before a name is removed, it is deprecated with a warning and a date.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import typer.main

import rowtime as rt
from rowtime.cli.main import app

GOLDEN = Path(__file__).parent / "public_api.txt"


def described(name: str, value: object) -> Iterator[str]:
    """A name with its signature; for a class also its public methods and attributes."""
    if inspect.isclass(value) and issubclass(value, BaseException):
        yield f"{name}: {', '.join(base.__name__ for base in value.__bases__)}"
        return
    yield f"{name}{inspect.signature(value)}" if callable(value) else name
    if not inspect.isclass(value):
        return
    for own, member in sorted(vars(value).items()):
        if own.startswith("_"):
            continue
        found = getattr(member, "__func__", member)
        yield f"  {own}{inspect.signature(found)}" if inspect.isfunction(found) else f"  {own}"


def api() -> str:
    """The whole public API."""
    lines = [line for name in sorted(rt.__all__) for line in described(name, getattr(rt, name))]
    group = typer.main.get_command(app)
    for name, command in sorted(group.commands.items()):  # type: ignore[attr-defined]  # a group has commands
        options = sorted(option for one in command.params for option in (*one.opts, *one.secondary_opts))
        lines.append(f"rowtime {name}: {' '.join(options)}")
    return "\n".join(lines) + "\n"


def test_names_and_signatures_are_those_of_the_golden_file(rewrite_goldens: bool) -> None:
    found = api()
    if rewrite_goldens:
        GOLDEN.write_text(found, encoding="utf-8")
    known = GOLDEN.read_text(encoding="utf-8") if GOLDEN.exists() else ""
    changed = "\n".join(difflib.unified_diff(known.splitlines(), found.splitlines(), "golden", "now", lineterm="", n=0))
    assert found == known, f"the public API has changed; if it should, run `make goldens`:\n{changed}"


def undated(source: str) -> list[int]:
    """The lines of the warnings of a deprecation whose text has no date."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    texts = ((call.lineno, ast.unparse(call)) for call in calls if ast.unparse(call.func).endswith("warn"))
    return [
        line for line, text in texts if "DeprecationWarning" in text and not re.search(r"\b20\d\d-\d\d-\d\d\b", text)
    ]


def test_a_deprecation_has_a_date() -> None:
    found = {path: undated(path.read_text(encoding="utf-8")) for path in Path(rt.__file__).parent.rglob("*.py")}
    assert {path: lines for path, lines in found.items() if lines} == {}
    planted = 'warnings.warn("x is deprecated", DeprecationWarning)\nwarn("x, until 2027-06-01", DeprecationWarning)'
    assert undated(planted) == [1]


def test_the_package_says_that_it_has_types() -> None:
    assert Path(rt.__file__).with_name("py.typed").exists()
    assert {*rt.__all__} == {*rt._WHERE}
