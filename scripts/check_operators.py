"""Switches over operators outside of operators: such code should call a method of the operator."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Final

import rowtime.operators
from rowtime.operators.contract import Operator
from rowtime.operators.every import OPERATORS

SOURCES: Final = Path(rowtime.operators.__file__).parents[1]
ROOMS: Final = ("plan", "runtime", "api", "audit", "state", "client", "cli", "testing")


def classes_of_operators(tree: ast.Module) -> set[str]:
    """Return the names by which a module imports operators."""
    return {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rowtime.operators")
        for alias in node.names
        if alias.name in NAMES
    }


def _is_of_kind(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "kind"
        and isinstance(node.value, ast.Name)
        and node.value.id in NODES
    )


def _is_of_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def switches(path: Path) -> list[int]:
    """Return the lines at which a module distinguishes operators by class or by kind."""
    tree = ast.parse(path.read_text("utf-8"), str(path))
    classes = classes_of_operators(tree)
    aliases = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)} & classes
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = []
    for node in ast.walk(tree):
        asked: ast.AST | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            asked = node.args[1]
        elif isinstance(node, ast.MatchClass):
            asked = node.cls
        elif isinstance(node, ast.Compare) and _is_of_kind(node.left) and _is_of_text(node.comparators[0]):
            found.append(node.lineno)
        if asked is not None and {n.id for n in ast.walk(asked) if isinstance(n, ast.Name)} & (classes | aliases):
            found.append(node.lineno if isinstance(node, ast.expr | ast.pattern) else 0)
    return sorted(found)


NAMES: Final = {base.__name__ for one in OPERATORS for base in one.__mro__ if issubclass(base, Operator)} - {
    "Operator",
    "Unary",
}
NODES: Final = ("node", "part", "one", "operator", "below", "gate")  # what modules call an operator


def main() -> int:
    """Print where there are such switches. Return 0 if there is none."""
    found = [
        (path, line) for room in ROOMS for path in sorted((SOURCES / room).rglob("*.py")) for line in switches(path)
    ]
    for path, line in found:
        print(f"{path.relative_to(SOURCES)}:{line}: a switch over operators: let the operator answer")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
