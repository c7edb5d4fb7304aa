"""What the source of a Python module says about one of its functions or classes; no code of the module runs.

Only what is certain is said: a name that is bound twice, by a condition, or by a decorated definition may be anything.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import BuiltinImporter, FileFinder, FrozenImporter, ModuleSpec, PathFinder
from inspect import Parameter, Signature, getattr_static, signature
from pathlib import Path
from typing import Any, Final

_DYNAMIC: Final = frozenset({"globals", "vars", "locals", "exec", "eval", "setattr", "__import__"})
_PLAIN_BASES: Final = frozenset({"object", "Protocol", "TableFunction", "Generic"})
_VALUES: Final = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.JoinedStr, ast.ListComp, ast.DictComp)


@dataclass(frozen=True)
class Described:
    """A function or class, as far as it is known without running it.

    ``parameters``: of a call; ``methods``: the names in a class. ``None`` if only the running module knows.
    """

    parameters: Signature | None = None
    methods: frozenset[str] | None = None

    def misfit(self, arguments: int) -> str:
        """Return why it cannot be called with so many arguments; empty if it can, or if that is not known."""
        if self.parameters is not None:
            try:
                self.parameters.bind(*[None] * arguments)
            except TypeError as error:
                return str(error)
        return ""


UNKNOWN: Final = Described()


def described(folder: str, module: str, name: str) -> Described:
    """Return what is known of ``name`` in a module, which `imported.load` would find from the same folder.

    Raises what loading it would certainly raise: ``ModuleNotFoundError``, ``SyntaxError``, ``AttributeError``; and
    ``TypeError`` if it is not callable.
    """
    return _described(folder, module, name, frozenset())


def of_loaded(function: Callable[..., Any]) -> Described:
    """Return what is known of a function or class that has been imported."""
    methods = frozenset(dir(function)) if isinstance(function, type) else None
    try:
        return Described(signature(function), methods)
    except (TypeError, ValueError):  # written in C
        return Described(None, methods)


def _described(folder: str, module: str, name: str, seen: frozenset[tuple[str, str]]) -> Described:
    source = source_of(folder, module)
    if source is None or source.content is None:
        return _of_imported(module, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(source.content, source.file)
    scope = _Scope(tree)
    first, *rest = name.split(".")
    if first not in scope.bound:
        if scope.open:
            return UNKNOWN
        raise AttributeError(f"module {module!r} has no attribute {first!r}")
    node = scope.only(first)
    if isinstance(node, ast.ImportFrom):
        origin, origin_name = _origin(module, source, node, name)
        with suppress(ImportError, AttributeError, SyntaxError):  # it may be a module, or come from an import hook
            if origin and (origin, origin_name) not in seen:
                return _described(folder, origin, origin_name, seen | {(module, name)})
        return UNKNOWN
    for part in rest:
        node = _member(node, part)
    return _of_node(node, f"{module}:{name}")


def _of_imported(module: str, name: str) -> Described:
    """Describe something in a module without source, if it has been imported; nothing of it is called."""
    value: Any = sys.modules.get(module)
    if value is None:
        return UNKNOWN
    for part in name.split("."):
        value = getattr_static(value, part)
    if isinstance(value, staticmethod | classmethod):
        return UNKNOWN
    if not callable(value):
        raise TypeError(f"{module}:{name} is not a function")
    return of_loaded(value)


def _origin(module: str, source: Source, node: ast.ImportFrom, name: str) -> tuple[str, str]:
    """Return from which module a name is imported, and its name in that one."""
    first, _, rest = name.partition(".")
    origin_name = next(alias.name for alias in node.names if (alias.asname or alias.name) == first)
    around = module.split(".")
    above = around[: len(around) - node.level + source.package] if node.level else []
    return ".".join(filter(None, [*above, node.module])), f"{origin_name}.{rest}" if rest else origin_name


class _Scope:
    """The names that a body binds; ``open``: code of it may bind others too."""

    def __init__(self, tree: ast.Module | ast.ClassDef) -> None:
        self.bound: dict[str, list[ast.AST]] = {}
        self._body = tree.body
        for name, node in _bindings(tree.body):
            self.bound.setdefault(name, []).append(node)
        words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        shared = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
        for name in shared:
            self.bound.setdefault(name, []).append(tree)
        self.open = bool({"*", "__getattr__"} & {*self.bound} or words & _DYNAMIC or _uses_sys_modules(tree))

    def only(self, name: str) -> ast.AST | None:
        """Return the node that binds a name if it is the only one and always runs."""
        (node, *more) = self.bound[name]
        certain = not more and node in self._body and "*" not in self.bound
        return node if certain else None


def _uses_sys_modules(tree: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in ("modules", "__dict__") for node in ast.walk(tree))


def _bindings(body: Iterable[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that statements bind in their own scope, each with the outermost statement."""
    for statement in body:
        yield from ((name, statement) for name in _names(statement))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest
    for child in ast.iter_child_nodes(node):
        yield from _names(child)


def _member(node: ast.AST | None, name: str) -> ast.AST | None:
    if not isinstance(node, ast.ClassDef) or node.decorator_list:
        return None
    scope = _Scope(node)
    if name in scope.bound:
        return scope.only(name)
    if _is_plain(node) and not scope.open:
        raise AttributeError(f"type object {node.name!r} has no attribute {name!r}")
    return None


def _of_node(node: ast.AST | None, called: str) -> Described:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        kinds = [decorator.id for decorator in node.decorator_list if isinstance(decorator, ast.Name)]
        if node.decorator_list and kinds not in (["staticmethod"], ["classmethod"]):
            return UNKNOWN
        return Described(_signature(node.args, skipped=int(kinds == ["classmethod"])))
    if isinstance(node, ast.ClassDef):
        return _of_class(node)
    value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if isinstance(value, ast.Lambda) and _is_name(node):
        return Described(_signature(value.args))
    if isinstance(value, _VALUES) and _is_name(node):
        raise TypeError(f"{called} is not a function")
    return UNKNOWN


def _is_name(node: ast.AST | None) -> bool:
    """Return True if a statement assigns its value to one name, not to parts of it."""
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return all(isinstance(target, ast.Name) for target in targets)


def _of_class(node: ast.ClassDef) -> Described:
    scope, plain = _Scope(node), _is_plain(node)
    init = scope.only("__init__") if "__init__" in scope.bound else None
    parameters = None
    if not node.decorator_list and not node.keywords and "__new__" not in scope.bound:
        if isinstance(init, ast.FunctionDef) and not init.decorator_list:
            parameters = _signature(init.args, skipped=1)
        elif plain and not node.bases and "__init__" not in scope.bound:
            parameters = Signature()
    return Described(parameters, frozenset(scope.bound) if plain and not scope.open else None)


def _is_plain(node: ast.ClassDef) -> bool:
    """Return True if a class has nothing but what its body binds."""
    names = [base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "") for base in node.bases]
    return {*names} <= _PLAIN_BASES and not node.decorator_list and not node.keywords


def _signature(arguments: ast.arguments, skipped: int = 0) -> Signature:
    """Return the parameters of a definition, without so many of the first; defaults count, not their values."""
    positional = [*arguments.posonlyargs, *arguments.args]
    optional = len(positional) - len(arguments.defaults)
    kinds: list[Any] = [Parameter.POSITIONAL_ONLY] * len(arguments.posonlyargs)
    kinds += [Parameter.POSITIONAL_OR_KEYWORD] * len(arguments.args)
    parameters = [
        _parameter(argument, kind, given=number >= optional)
        for number, (argument, kind) in enumerate(zip(positional, kinds, strict=True))
    ][skipped:]
    if arguments.vararg is not None:
        parameters.append(Parameter(arguments.vararg.arg, Parameter.VAR_POSITIONAL))
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(_parameter(argument, Parameter.KEYWORD_ONLY, given=default is not None))
    if arguments.kwarg is not None:
        parameters.append(Parameter(arguments.kwarg.arg, Parameter.VAR_KEYWORD))
    return Signature(parameters)


def _parameter(argument: ast.arg, kind: Any, *, given: bool) -> Parameter:
    return Parameter(argument.arg, kind, default=None if given else Parameter.empty)


_OF_PYTHON: Final = (BuiltinImporter, FrozenImporter, PathFinder)


@dataclass(frozen=True)
class Source:
    """The file of a module and its bytes, ``None`` if it is not written in Python; ``package``: its ``__init__``."""

    file: str
    content: bytes | None
    package: bool = False


def source_of(folder: str, module: str) -> Source | None:
    """Return the source of a module as `imported.load` would find it; ``None`` if the files do not tell.

    Raises ``ModuleNotFoundError`` if it is nowhere.
    """
    if module.partition(".")[0] in sys.builtin_module_names:
        return None
    places: Iterable[str] | None = [folder, *sys.path]
    names, spec, above = module.split("."), None, None
    for name in names:
        spec = _within(places or (), name) or (_by_others(name) if above is None else None)
        if spec is None:
            if module in sys.modules or (above is not None and _moves(above)):
                return None
            raise ModuleNotFoundError(f"No module named {module!r}")
        places, above = spec.submodule_search_locations, spec
    return None if spec is None or spec.loader is None else _read(spec, names[-1])


def _within(places: Iterable[str], name: str) -> ModuleSpec | None:
    """Return what the first of some folders or archives has under a name; folders without ``__init__`` come last."""
    portions: list[str] = []
    for place in places:
        finder = pkgutil.get_importer(place)
        if finder is None:
            continue
        if isinstance(finder, FileFinder):
            finder.invalidate_caches()  # a file may be a moment old
        spec = finder.find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
        if spec is not None:
            portions += spec.submodule_search_locations or ()
    if not portions:
        return None
    namespace = ModuleSpec(name, None, is_package=True)
    namespace.submodule_search_locations = portions
    return namespace


def _by_others(name: str) -> ModuleSpec | None:
    """Return what other finders of this Python know: those of packages that are installed in place."""
    for finder in sys.meta_path:
        if finder not in _OF_PYTHON and (spec := finder.find_spec(name, None)) is not None:
            return spec
    return None


def _moves(spec: ModuleSpec) -> bool:
    """Return True if code of a module may say which modules are below it."""
    content = None if spec.loader is None else _read(spec, spec.name).content
    return content is not None and (b"__path__" in content or b"sys.modules" in content)


def _read(spec: ModuleSpec, name: str) -> Source:
    file = spec.origin or name
    if not file.endswith(".py"):
        return Source(file, None)
    package = spec.submodule_search_locations is not None
    try:
        return Source(file, spec.loader.get_data(file), package)  # type: ignore[union-attr]  # a loader of files
    except (AttributeError, OSError):
        with suppress(OSError):
            return Source(file, Path(file).read_bytes(), package)
        return Source(file, None, package)
