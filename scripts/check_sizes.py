"""The size of modules and functions: no module over 600 lines; the medians are reported.

A module that has grown past the limit holds more than one concept: split it by them.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Final

SOURCE: Final = Path(__file__).parent.parent / "src"
LIMIT: Final = 600
NEAR: Final = 500
LONG_FUNCTION: Final = 50


def function_lengths(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of lines of each function of a module, and its place."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield length, f"{path.relative_to(SOURCE.parent)}:{node.lineno} {node.name}"


def listed(title: str, sizes: list[tuple[int, str]]) -> None:
    """Print sizes under a title, greatest first, or nothing if there are none."""
    if sizes:
        print(title)
    for size, name in sorted(sizes, reverse=True):
        print(f"  {size:5} {name}")


def main() -> int:
    """Print the report. Return 1 if a module is over the limit."""
    paths = sorted(SOURCE.rglob("*.py"))
    modules = [(len(path.read_text("utf-8").splitlines()), str(path.relative_to(SOURCE.parent))) for path in paths]
    functions = [function for path in paths for function in function_lengths(path)]
    over = [module for module in modules if module[0] > LIMIT]
    listed(f"Functions over {LONG_FUNCTION} lines:", [one for one in functions if one[0] > LONG_FUNCTION])
    listed(f"Modules near the limit of {LIMIT} lines:", [one for one in modules if NEAR <= one[0] <= LIMIT])
    listed(f"Modules over the limit of {LIMIT} lines; split them by concept:", over)
    print(f"{len(modules)} modules, median {median(size for size, _ in modules or [(0, '')]):g} lines")
    print(f"{len(functions)} functions, median {median(size for size, _ in functions or [(0, '')]):g} lines")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
