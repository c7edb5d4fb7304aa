"""What is done with the Python modules that a script names: they are read, or, for a run, imported.

Checking, explaining and showing a script run none of its code. The source says whether a function exists and how many
arguments it takes. The columns of a table function are known only when its class runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from rowtime.core.errors import Place, Problem, Refused, refuse
from rowtime.core.imported import Imported, described_error, load
from rowtime.core.python_source import UNKNOWN, Described, described, of_loaded
from rowtime.operators.contract import Column
from rowtime.operators.rows.table_function import TableFunctionCall
from rowtime.sql.script import parse_script
from rowtime.sql.statements import CreateFunction

if TYPE_CHECKING:
    import pyarrow as pa

    from rowtime.plan.stored import StoredPlan

NOT_CHECKED: Final = "R169"
_DEFINITION: Final = re.compile(r"\s*AS\s+'([\w.]+):([\w.]+)'\s*", re.IGNORECASE)
_NEEDED: Final = ("columns", "process")
Columns = tuple[Column, ...]


@dataclass(frozen=True)
class Unread:
    """A table function that has not been imported. ``stored``: the columns of its calls in a plan, by operator."""

    named: Imported
    known: Described = UNKNOWN
    stored: Mapping[str, Columns] | None = None

    def columns(self, given: Sequence[tuple[str, str]]) -> NoReturn:  # noqa: ARG002 - the contract
        """Raise: it cannot run."""
        raise AssertionError(f"{self.named.module} is not imported here")

    def process(self, rows: pa.Table, state: dict[str, Any]) -> NoReturn:  # noqa: ARG002 - the contract
        """Raise: it cannot run."""
        raise AssertionError(f"{self.named.module} is not imported here")

    def columns_of(self, operator: str, arguments: int, place: Place) -> Columns:
        """Return the columns of a call, if they are stored. Raises ``Refused``: R141, R169."""
        if self.stored is not None and operator in self.stored:
            return self.stored[operator]
        if misfit := self.known.misfit(arguments):
            raise refuse("R141", f"{self.named.name} cannot be called like this: {misfit}", place=place)
        module = self.named.module
        what = f"this query is not checked: only {self.named.name} itself knows its columns, and {module} is not run"
        hint = f"Let it run {module}: --import, or imports=True in Python."
        raise Refused(Problem(NOT_CHECKED, what, place, hint, warns=True))


@dataclass(frozen=True)
class PythonCode:
    """``imports``: the modules are imported. ``stored``: they are not even read; see `Unread`."""

    imports: bool = False
    stored: Mapping[str, Columns] | None = None

    @classmethod
    def of_plan(cls, plan: StoredPlan) -> PythonCode:
        """Return what is known from a checkpoint's plan alone."""
        calls = {name: plan.operators[name].fields["columns"] for name in plan.of_kind(TableFunctionCall.kind)}
        return cls(stored={name: tuple(Column(c["name"], c["type"]) for c in of) for name, of in calls.items()})

    def function(self, statement: CreateFunction) -> Any:
        """Return the class or function that ``CREATE FUNCTION f … AS 'module:name'`` names; raises ``Refused`` (R141).

        A table function is `Unread` if it is not imported.
        """
        named, known, value = _named(statement), UNKNOWN, None
        try:
            if self.imports:
                value = load(*astuple(named))
                known = of_loaded(value) if callable(value) else known
            elif self.stored is None:
                known = described(*astuple(named))
        except Exception as error:
            why = described_error(error) if self.imports else f"{type(error).__name__}: {error}"
            what = f"{statement.name.text} cannot be loaded from {named.module}: {why}"
            raise refuse("R141", what, place=statement.place) from error
        if self.imports and not callable(value):
            raise refuse("R141", f"{named.module}:{named.name} is not a function", place=statement.place)
        if statement.parameters is not None:
            _check_arguments(statement, named, known)
            return named
        if known.methods is not None and (missing := [name for name in _NEEDED if name not in known.methods]):
            what = f"{named.module}:{named.name} is not a table function: it has no method {missing[0]}"
            raise refuse("R141", what, place=statement.place)
        return value if self.imports else Unread(named, known, self.stored)


def modules_of(sql: str) -> list[str]:
    """Return the Python modules that a script names."""
    functions = [one for one in parse_script(sql).statements if isinstance(one, CreateFunction) and one.body is None]
    matches = (_DEFINITION.fullmatch(one.definition.rstrip("; \n")) for one in functions)
    return sorted({match[1] for match in matches if match is not None})


def _named(statement: CreateFunction) -> Imported:
    match = _DEFINITION.fullmatch(statement.definition.rstrip("; \n"))
    if match is None:
        hint = "Name a Python class: CREATE FUNCTION f AS 'package.module:Class'."
        if statement.parameters is not None:
            hint = "Name a Python function, AS 'package.module:function', or write RETURN and an expression."
        raise refuse("R141", f"the definition of {statement.name.text} is not understood", hint, statement.place)
    return Imported(str(Path.cwd()), match[1], match[2])


def _check_arguments(statement: CreateFunction, named: Imported, known: Described) -> None:
    """Refuse (R141) a function of Python that cannot take as many values as the one of SQL."""
    count = len(statement.parameters or ())
    if misfit := known.misfit(count):
        what = f"{named.module}:{named.name} cannot be called with {count} value{'' if count == 1 else 's'}: {misfit}"
        hint = f"Define {statement.name.text} with the parameters that it has in Python."
        raise refuse("R141", what, hint, statement.place)
