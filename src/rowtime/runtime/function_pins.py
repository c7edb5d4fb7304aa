"""Fingerprints of users' functions, so that a start detects a function that has changed since the first start.

A function is identified by its behaviour: its code, the values of its closure, and the functions of its own module that
it calls. Its name and place do not matter. Its source is not stored, so a change can be detected but not undone.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import astuple
from functools import partial
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Final

from rowtime.core.errors import Refused, refuse
from rowtime.core.imported import Imported, load
from rowtime.runtime.given_functions import python_functions
from rowtime.state import files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.plan.program import Program
    from rowtime.state.checkpoint import Checkpoint

FILE: Final = "functions.json"
VERSION: Final = f"{sys.version_info.major}.{sys.version_info.minor}"
"""The version of Python: another version compiles the same source differently, so fingerprints would differ."""
_PLAIN: Final = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


def print_of(function: Callable[..., Any]) -> str:
    """Return a short text that is equal for equal functions, in every process of one version of Python."""
    return hashlib.sha256(repr([*_parts(function, {})]).encode()).hexdigest()[:16]


def _parts(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Yield the parts of a value; values that cannot be compared between processes count by their type."""
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif id(value) not in seen:
        seen[id(value)] = value  # kept alive, so that no other object gets its id
        yield from _inside(value, seen)


def _inside(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for element in value:
            yield from _parts(element, seen)
    elif isinstance(value, Mapping):
        yield from sorted(repr([*_parts(key, seen), *_parts(element, seen)]) for key, element in value.items())
    elif isinstance(value, set | frozenset):
        yield from sorted(repr([*_parts(element, seen)]) for element in value)
    else:
        yield from _called(value, seen)


def _called(value: Any, seen: dict[int, Any]) -> Iterator[Any]:
    """Yield the parts of a callable."""
    if callable(getattr(value, "func", None)) and hasattr(value, "evalType"):  # made by PySpark's udf
        yield from (str(value.returnType), value.evalType)
        yield from _parts(value.func, seen)
    elif isinstance(value, CodeType):
        yield from (value.co_code.hex(), value.co_names, value.co_varnames[: value.co_argcount], value.co_flags)
        yield from _parts(value.co_consts, seen)
    elif isinstance(value, FunctionType):
        yield from _of_function(value, seen)
    elif isinstance(value, Imported):
        yield from _parts(load(*astuple(value)), seen)
    elif isinstance(value, partial):
        yield from _parts([value.func, value.args, value.keywords], seen)
    elif hasattr(value, "__wrapped__"):
        yield from _parts(value.__wrapped__, seen)
    else:
        named = value if hasattr(value, "__qualname__") else type(value)
        yield (getattr(named, "__module__", ""), named.__qualname__)


def _of_function(function: FunctionType, seen: dict[int, Any]) -> Iterator[Any]:
    yield from _parts(_without_text(function), seen)
    yield from _parts([function.__defaults__, function.__kwdefaults__], seen)
    for cell in function.__closure__ or ():
        try:
            yield from _parts(cell.cell_contents, seen)
        except ValueError:  # a cell that is still empty
            yield "empty"
    for name in sorted({*function.__code__.co_names}):
        referred = function.__globals__.get(name)
        ours = isinstance(referred, FunctionType) and referred.__module__ == function.__module__
        if ours or (isinstance(referred, _PLAIN) and referred is not None):
            yield name
            yield from _parts(referred, seen)


def _without_text(function: FunctionType) -> CodeType:
    """Return the code of a function, without its docstring."""
    code = function.__code__
    if function.__doc__ is None or not code.co_consts or code.co_consts[0] != function.__doc__:
        return code
    return code.replace(co_consts=(None, *code.co_consts[1:]))


def prints(program: Program, given: Mapping[str, Callable[..., Any]], spark: SparkSession) -> dict[str, str]:
    """Return the fingerprints of the Python functions that a script calls, by lower-case name.

    These are functions of the pipeline, the script and the session. One that cannot be inspected is omitted.
    """
    called = {name.lower() for name in re.findall(r"(\w+)`?\s*\(", program.written)}
    scripted = {name: function for name, (function, _) in program.catalog.python.items()}
    ours = {**scripted, **given}
    of_pipeline = {name.lower(): function for name, function in ours.items() if name.lower() in called}
    return {name: print_of(one) for name, one in {**python_functions(spark, called), **of_pipeline}.items()}


def check(checkpoint: Checkpoint, now: Mapping[str, str], renewed: Collection[str]) -> dict[str, Any] | None:
    """Return the record of functions for a checkpoint from this start on; ``None`` if it is unchanged.

    ``renewed``: functions that may have changed. Raises ``Refused`` (R450) for another changed one.
    """
    kept, wanted = recorded(checkpoint), {name.lower() for name in renewed}
    last = checkpoint.journal.last()
    tick = 0 if last is None else last["tick"] + 1
    prints = dict(kept)
    for name, print_now in now.items():
        pin = kept.get(name)
        if pin is None or last is None or pin["python"] != VERSION:
            before = [] if pin is None or last is None else pin.get("before", [])
            prints[name] = {"python": VERSION, "print": print_now, "before": before}
        elif pin["print"] != print_now:
            if name not in wanted:
                raise _other(name)
            before = [*pin.get("before", []), {"print": pin["print"], "until": tick}]
            prints[name] = {"python": VERSION, "print": print_now, "before": before}
    return prints if prints != kept else None


def of_now(now: Mapping[str, str]) -> dict[str, Any]:
    """Return the record for functions all of whose results are by their present code."""
    return {name: {"python": VERSION, "print": print_now, "before": []} for name, print_now in now.items()}


def check_replay(checkpoint: Checkpoint, now: Mapping[str, str]) -> None:
    """Refuse to compute again with functions that differ from those of the run (R450, R407)."""
    for name, pin in recorded(checkpoint).items():
        if pin["python"] == VERSION and now.get(name, pin["print"]) != pin["print"]:
            raise _other(name)
        if pin.get("before"):
            what = f"the function {name} was a different one before tick {pin['before'][-1]['until']}"
            raise refuse("R407", what, "Verify a pipeline before one of its functions changes.")


def recorded(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return a checkpoint's record of functions, by name."""
    path = checkpoint.folder / FILE
    return dict(json.loads(path.read_text())) if path.exists() else {}


def keep(checkpoint: Checkpoint, prints: Mapping[str, Any] | None) -> None:
    """Write a checkpoint's record of functions from now on."""
    if prints is not None:
        files.write_over(checkpoint.folder / FILE, json.dumps(prints, indent=1, sort_keys=True).encode())


def _other(name: str) -> Refused:
    what = f"the function {name} is not the one of the first start"
    hint = (
        "Use the original function; or, if you want the new one for all later rows, say so: "
        f'rowtime run --renewed {name}, or pipeline.renewed("{name}").'
    )
    return refuse("R450", what, hint)
