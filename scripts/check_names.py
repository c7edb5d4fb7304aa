"""Check that no name in the sources is a word that fits anything, such as `found`, `made` or `asked`.

Write the noun: `columns`, `match`, `problems`. Fields that journals, plans or JSON have by such a name keep it.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parents[1] / "src/rowtime"
EMPTY: Final = frozenset({"found", "made", "asked", "there", "told", "said", "its"})
STORED: Final = frozenset(
    {
        ("operators/events/clip.py", "asked"),
        ("operators/events/imported_bounds.py", "said"),
        ("operators/rows/table_function.py", "made"),
        ("operators/streams/stream_clocks.py", "said"),
        ("runtime/health.py", "found"),
    }
)
"""Fields with these names are in journals, plans, or the output of a command."""


def names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield every name that a module gives to something, by line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def main() -> int:
    """Print the names that say nothing. Return 1 if there are any."""
    wrong = []
    for path in sorted(SOURCES.rglob("*.py")):
        file = path.relative_to(SOURCES).as_posix()
        given = [(1, path.stem), *names(ast.parse(path.read_text(encoding="utf-8")))]
        wrong += [
            f"src/rowtime/{file}:{line}: {name} does not say what it is; use a noun"
            for line, name in given
            if name.strip("_").lower() in EMPTY and (file, name) not in STORED
        ]
    print("\n".join(wrong) or "no name is one of " + ", ".join(sorted(EMPTY)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
