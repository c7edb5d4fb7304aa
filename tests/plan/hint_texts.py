"""Every hint in the code, read from the sources: the texts, with … for filled-in parts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import rowtime

SOURCES = Path(rowtime.__file__).parent
FILLED = "\0"  # the filled-in parts of an f-string
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Hint:
    """A text that a call gives as a hint, and the place of the call."""

    text: str
    file: str
    line: int

    def gives(self, hint: str) -> bool:
        """True if ``hint`` is this text with its parts filled in."""
        parts = (re.escape(part) for part in self.text.strip().split(FILLED))
        return re.fullmatch(".*".join(parts), hint.strip(), re.DOTALL) is not None

    @property
    def words(self) -> bool:
        """True if all of it is filled in, like the rewrites of `plan.bind.rewrites`, each of which was bound."""
        return bool(re.search(r"\w", self.text))

    @property
    def shown(self) -> str:
        """The text as a person writes it down."""
        return re.sub(f"{FILLED}+", "…", self.text).strip()


@cache
def hints() -> tuple[Hint, ...]:
    """Every hint of the code; a text that a file has several times is listed once."""
    found = {}
    for module in _modules().values():
        for node, scope in _calls(module.tree):
            given = module.hint_of(node)
            for text in module.texts(given, scope) if given is not None else ():
                if text.strip():
                    hint = Hint(text, module.name, node.lineno)
                    found.setdefault((hint.file, hint.shown), hint)
    return tuple(found.values())


@cache
def _modules() -> dict[str, _Module]:
    files = sorted(SOURCES.rglob("*.py"))
    return {str(file.relative_to(SOURCES)): _Module(file) for file in files}


def _calls(tree: ast.AST, scope: Function | None = None) -> Iterator[tuple[ast.Call, Function | None]]:
    for node in ast.iter_child_nodes(tree):
        inner = node if isinstance(node, Function) else scope
        if isinstance(node, ast.Call):
            yield node, scope
        yield from _calls(node, inner)


def _named(tree: ast.AST, name: str) -> list[ast.expr]:
    """The value of a name in a function or a module; texts that are built in steps are not followed."""
    found: list[ast.expr] = []
    for node in ast.walk(tree) if isinstance(tree, Function) else ast.iter_child_nodes(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name) and target.id == name:
                    found.append(node.value)
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=True)
                    found += [value for one, value in pairs if isinstance(one, ast.Name) and one.id == name]
        one = isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and isinstance(node.target, ast.Name)
        if one and node.target.id == name and node.value is not None:
            assert not (isinstance(node, ast.AugAssign) and name == "hint"), f"line {node.lineno}: say it in one piece"
            found.append(node.value)
    return found


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """A function or class, and not a part of an expression."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.expr):
            yield node
            yield from _statements(node)


class _Module:
    def __init__(self, file: Path) -> None:
        self.name = str(file.relative_to(SOURCES))
        self.tree = ast.parse(file.read_text())
        self.functions: dict[str, Function] = {}
        self.methods: dict[str, Function] = {}
        statements = [*_statements(self.tree)]
        for node in statements:
            if isinstance(node, ast.ClassDef):
                made = {part.name: part for part in node.body if isinstance(part, Function)}
                self.methods.update(made)
                if "__init__" in made:
                    self.functions[node.name] = made["__init__"]
        inside = {id(method) for method in self.methods.values()}
        for node in statements:
            if isinstance(node, Function) and id(node) not in inside:
                self.functions.setdefault(node.name, node)

    def hint_of(self, call: ast.Call) -> ast.expr | None:
        """The argument of a call that is a hint."""
        for keyword in call.keywords:
            if keyword.arg == "hint":
                return keyword.value
        place = self._place(call)
        return call.args[place] if place is not None and place < len(call.args) else None

    def _place(self, call: ast.Call) -> int | None:
        if isinstance(call.func, ast.Name):
            if call.func.id == "Problem":
                return 3
            found = self.functions.get(call.func.id) or _elsewhere(call.func.id)
        elif isinstance(call.func, ast.Attribute):
            found = self.methods.get(call.func.attr) or _method(call.func.attr)
        else:
            return None
        names = [one.arg for one in found.args.args] if found is not None else []
        return names.index("hint") - (names[0] == "self") if "hint" in names else None

    def texts(self, node: ast.expr | None, scope: Function | None, depth: int = 0) -> list[str]:  # noqa: PLR0911
        """The texts that an expression may have; unknown parts count as filled in."""
        if depth > 12 or node is None:
            return []
        if isinstance(node, ast.Constant):
            return [str(node.value)] if isinstance(node.value, str) else []
        if isinstance(node, ast.JoinedStr):
            return ["".join(str(p.value) if isinstance(p, ast.Constant) else FILLED for p in node.values)]
        if isinstance(node, ast.IfExp):
            return [*self.texts(node.body, scope, depth + 1), *self.texts(node.orelse, scope, depth + 1)]
        if isinstance(node, ast.BoolOp):
            return [text for value in node.values for text in self.texts(value, scope, depth + 1)]
        if isinstance(node, ast.BinOp):
            left, right = (self.texts(side, scope, depth + 1) or [FILLED] for side in (node.left, node.right))
            return [one + other for one in left for other in right]
        if isinstance(node, ast.Subscript):
            return self._entries(node, scope, depth)
        if isinstance(node, ast.Name):
            return self._of_name(node.id, scope, depth)
        if isinstance(node, ast.Call):
            return self._of_call(node, scope, depth)
        return []

    def _of_name(self, name: str, scope: Function | None, depth: int) -> list[str]:
        if scope is not None and name == "hint" and name in {arg.arg for arg in scope.args.args}:
            return []  # the caller has it
        values = (_named(scope, name) if scope is not None else []) or _named(self.tree, name)
        return [text for value in values for text in self.texts(value, scope, depth + 1)] or [FILLED]

    def _of_call(self, call: ast.Call, scope: Function | None, depth: int) -> list[str]:
        if isinstance(call.func, ast.Attribute):
            if call.func.attr in ("strip", "rstrip", "format", "get"):
                return self.texts(call.func.value, scope, depth + 1)
            function, module = self.methods.get(call.func.attr), self
        else:
            name = call.func.id if isinstance(call.func, ast.Name) else ""
            function = self.functions.get(name)
            module = self if function else next((m for m in _modules().values() if name in m.functions), self)
            function = function or module.functions.get(name)
        if function is None:
            return [FILLED]
        ends = [node.value for node in ast.walk(function) if isinstance(node, ast.Return)]
        return [text for end in ends for text in module.texts(end, function, depth + 1)] or [FILLED]

    def _entries(self, node: ast.Subscript, scope: Function | None, depth: int) -> list[str]:
        found = _named(self.tree, node.value.id) if isinstance(node.value, ast.Name) else []
        values = [value for one in found if isinstance(one, ast.Dict) for value in one.values]
        return [text for value in values for text in self.texts(value, scope, depth + 1)] or [FILLED]


def _elsewhere(name: str) -> Function | None:
    places = [_modules()["core/errors.py"], *_modules().values()]
    return next((module.functions[name] for module in places if name in module.functions), None)


def _method(name: str) -> Function | None:
    found = [m.methods[name] for m in _modules().values() if name in m.methods]
    return next((one for one in found if "hint" in {arg.arg for arg in one.args.args}), None)
