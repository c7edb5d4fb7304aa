"""Check that `rowtime.core.columns` defines each hidden column that more than one module knows."""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src/rowtime"
COLUMNS = SOURCES / "core/columns.py"
HIDDEN = re.compile(r"(?<!\w)__[a-z][a-z_]*(?<!_)")


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the hidden columns in the literals of a module, without docstrings, by line."""
    tree = ast.parse(path.read_text())
    told = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in told:
            yield from ((node.lineno, found) for found in HIDDEN.findall(re.sub(r"\b__\w+__\b", "", node.value)))


def main() -> int:
    """Print what is wrong. Return 1 if anything is."""
    defined = {text for _, text in texts(COLUMNS)}
    places: dict[str, dict[Path, int]] = defaultdict(dict)
    wrong = []
    for path in sorted(SOURCES.rglob("*.py")):
        if path == COLUMNS:
            continue
        for line, text in texts(path):
            places[text].setdefault(path, line)
        for node in ast.parse(path.read_text()).body:
            value = getattr(node, "value", None)
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(value, ast.Constant | ast.Tuple):
                parts = value.elts if isinstance(value, ast.Tuple) else [value]
                if any(isinstance(p, ast.Constant) and HIDDEN.fullmatch(str(p.value)) for p in parts):
                    wrong.append(
                        f"{path.relative_to(SOURCES)}:{node.lineno}: a hidden column is defined in core/columns.py"
                    )
    for text, found in sorted(places.items()):
        if len(found) > 1 and text not in defined:
            where = ", ".join(f"{path.relative_to(SOURCES)}:{line}" for path, line in found.items())
            wrong.append(f"{text} is known in {where}: define it in core/columns.py")
    print("\n".join(wrong) or f"{len(defined)} hidden columns are defined once")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
