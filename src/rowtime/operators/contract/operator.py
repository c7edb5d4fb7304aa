"""The operator: a frozen plan node that says what it needs, keeps, emits and promises.

The order in an operator file is: ``requires``, ``keeps``, ``emits``, ``promises``, ``step``. The first four are pure
Python on facts and scalars: the planner, EXPLAIN and the running tick all use the same ones. ``step`` turns the new
rows of a tick (frames) into results; it is the only place that touches Spark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.expr.facts import Fact
from rowtime.operators.contract.distribution import ByKeys, Distribution, Gathered, agreed
from rowtime.operators.contract.edge import Column, Delta, EventTime, Origin, Shape, shaped_once
from rowtime.operators.contract.fires import FireColumns
from rowtime.operators.contract.lineage import Derivation, Link, Pairs, named
from rowtime.operators.contract.requirement import UNORDERED, Requirement
from rowtime.operators.contract.state import Control, StateNote
from rowtime.operators.contract.tick import Tick

if TYPE_CHECKING:
    from sqlglot import exp

    from rowtime.frames.frame import Frame
    from rowtime.operators.order.ordered import Ordered
    from rowtime.operators.over.over_calls import RunningMark


class Operator(ABC):
    """A plan node. The defaults suit most operators; each operator overrides them in its own file."""

    kind: ClassVar[str]
    decides: ClassVar[str] = "FILTER"
    """What the columns that decide about rows do (`decided_by`), in OpenLineage's words."""
    promise: ClassVar[str] = ""
    """The bound that goes downstream, in words; empty if it is the identity or the least."""
    reason: ClassVar[str] = ""
    """Why the promise holds, in one sentence; empty if it is the identity or the least."""

    needs: ClassVar[tuple[Requirement, ...]] = ()
    """What each input must give, if it is the same in every plan; empty for nothing, or if `requires` computes it."""
    same_below: ClassVar[tuple[str, ...] | None] = None
    """The hidden columns that a row shares with the row it is made from; ``None`` if `link` has more to say."""
    finishes_groups: ClassVar[bool | None] = None
    """Whether its rows are groups that are emitted when final, without any required order.

    ``None``: as in its one input.
    """

    keeps_versions: ClassVar[bool] = False
    """True if the operator keeps events when it works on versions of them."""
    numbers_changes: ClassVar[bool] = False
    """True if the operator numbers the changes of events, so that operators above can distinguish them."""
    cuts_time: ClassVar[bool] = False
    """True if it makes results for every part of an event's time, so that an endless event has endless results."""
    final_only: ClassVar[bool] = False
    """True if its results are emitted once, when final, so that EMIT CHANGES cannot show them earlier."""
    writes_final: ClassVar[bool] = False
    """True if final events can go to a file of their own, which a directory can take over."""

    is_gate: ClassVar[bool] = False
    """True if the purpose of the operator is to refuse rows."""
    passes_all: ClassVar[bool] = False
    """True if each row that comes in, or that it accepts as a gate, is emitted once."""
    computes: ClassVar[bool] = False
    """True if a query may end with it and its rows are refused if they cannot be computed."""
    fuses: ClassVar[bool] = False
    """True if its expressions may be computed in one step with those of a projection below it."""
    in_traces: ClassVar[bool] = True
    """True if the trace of a row lists the operator's own rows."""
    at_edge: ClassVar[bool] = False
    """True if it is between the query of a pump and its target."""
    has_own_time: ClassVar[bool] = False
    """True if its rows are released by a time of their own, and by no clock of arrivals."""
    holds_itself: ClassVar[bool] = False
    """True if the bound that it promises holds its rows back; otherwise those of its inputs do."""
    keeps_places: ClassVar[bool] = False
    """True if its rows have the order and the places of its input's, so that a merge below it can provide them."""
    keeps_fires: ClassVar[bool] = False
    """True if each of its rows is one of its first input, and so has the columns of a pane's fire if that has."""
    begins_anywhere: ClassVar[bool] = False
    """True if an upgraded plan may have it as new: its results are those of the rows from then on."""
    keeps_rows_alone: ClassVar[bool] = False
    """True if it keeps at most waiting rows and marks of rows that have passed: its input may change at any tick."""
    compares: ClassVar[tuple[str, ...]] = ()
    """The fields by which it compares rows with earlier ones."""
    of_results: ClassVar[tuple[str, ...]] = ()
    """The fields of its final projection: they may change at any tick."""
    control: ClassVar[type[Control]] = Control
    """The class of its scalars, declared in its own file."""
    holds_results: ClassVar[bool] = False
    """True if it holds partial results, each of which is complete at its end."""
    awaits_event: ClassVar[bool] = False
    """True if the bound of an event time, its second input, releases its rows."""
    passes_bounds: ClassVar[bool] = False
    """True if it passes on the bounds of an event time, its second input, among its rows."""
    promotes: ClassVar[bool] = False
    """True if its rows have a rowtime about which the bounds below say nothing."""
    merges_writers: ClassVar[bool] = False
    """True if none of its writers is a writer of its input."""
    side_by_side: ClassVar[bool] = False
    """True if its writers are those of its inputs, with the inputs' numbers before their names."""

    name: str
    """Unique in its plan and stable across runs."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep what each operator emits: a tick asks for it a hundred times, and an operator never changes."""
        super().__init_subclass__(**kwargs)
        if "emits" in cls.__dict__:
            cls.emits = shaped_once(cls.emits)  # type: ignore[assignment]

    if TYPE_CHECKING:  # a field or a property: a field cannot override a property of the base class

        @property
        def inputs(self) -> tuple[Operator, ...]:
            """Return the operators that this one reads."""
            ...

    def requires(self) -> tuple[Requirement, ...]:
        """Return what each input must give: order, or nothing."""
        return self.needs or (UNORDERED,) * len(self.inputs)

    def keeps(self) -> tuple[StateNote, ...]:
        """Return what is kept from tick to tick, and its limits."""
        return ()

    def with_details(self) -> Operator:
        """Return it with the columns that only a trace shows; most have none."""
        return self

    @abstractmethod
    def emits(self) -> Shape:
        """Return the shape of the output edge."""

    def promises(self, clocks: Sequence[Clocks], control: Any) -> Clocks:  # noqa: ARG002 - the operator's
        """Return the output's bounds, from those of its inputs and its scalars; by default the least of these."""
        return {"": min(least(by_writer.values()) for by_writer in clocks)}

    def link(self, n: int) -> Link:
        """Return which rows of its n-th input may have contributed to one of its rows; by default all of them."""
        return Link() if self.same_below is None else Link(self.passed_on(n, *self.same_below))

    def unchanged(self, n: int) -> Link:
        """Return the link of a row that an operator passes on unchanged."""
        below = self.inputs[n].emits().internals
        return Link(self.passed_on(n, *(name for name in self.emits().internals if name in below)))

    def passed_on(self, n: int, *ours: str) -> Pairs:
        """Return the columns that its rows share with those of its n-th input, and these hidden ones."""
        below = self.inputs[n].emits()
        names = [name for name in self.emits().names if name in below.names]
        return named([(name, name) for name in (*names, *ours)])

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the columns of its n-th input from which a column is made; ``None`` if any of them may contribute."""
        mine, *others = self.inputs[n], *(side for number, side in enumerate(self.inputs) if number != n)
        if column in mine.readable() or column in mine.emits().internals:
            return Derivation((column,))
        return Derivation(()) if any(column in side.readable() for side in others) else None

    def decided_by(self, n: int) -> Iterable[str] | None:
        """Return the columns of its n-th input that decide about rows; by default all that it reads."""
        return self.required_columns(n, ())

    def on_versions(self, below: Sequence[Operator]) -> Operator:  # noqa: ARG002 - the operator's
        """Return the operator that does the same on the versions of events from ``below``, for EMIT CHANGES."""
        raise TypeError(f"{self.kind}: it has no form for versions")

    def beneath_keeping(self) -> Operator:
        """Return the same on versions, if an operator that keeps events is above."""
        return self

    @classmethod
    def passes_each(cls, fields: Mapping[str, Any]) -> bool:  # noqa: ARG003 - the operator's
        """Return `passes_all`, if that does not depend on its stored ``fields``."""
        return cls.passes_all

    @classmethod
    def drops_rows(cls, fields: Mapping[str, Any]) -> bool:  # noqa: ARG003 - the operator's
        """Return True if it is a filter over its input rows; by its stored ``fields``."""
        return False

    @classmethod
    def holding(cls, fields: Mapping[str, Any], control: Mapping[str, Any]) -> str:  # noqa: ARG003 - the operator's
        """Return what it waits for besides a clock, in words; by its stored ``fields`` and scalars."""
        return ""

    def refuses(self) -> bool:
        """Return True if ``name.rejected`` has the rows that it refuses."""
        return self.is_gate

    def refused_columns(self) -> tuple[Column, ...]:
        """Return the user's columns of the rows that it refuses."""
        return self.inputs[0].emits().of_users if self.inputs else self.emits().of_users

    def imports_from(self) -> str | None:
        """Return the event stream whose bounds it passes on and whose arrival clocks it knows; ``None`` for none."""
        return None

    def checks_declared(self) -> bool:
        """Return True for a gate that checks rows against the definition of a stream."""
        return False

    def checks_pump(self, pump: str) -> bool:  # noqa: ARG002 - the operator's
        """Return True for a gate between that pump and its target."""
        return False

    def readable(self) -> frozenset[str]:
        """Return the columns that an operator above may read: visible ones, and hidden ones made for it."""
        return frozenset(self.emits().names)

    def required_columns(self, n: int, wanted: Collection[str]) -> Iterable[str] | None:  # noqa: ARG002 - the operator's
        """Return the columns of its n-th input that it reads if ``wanted`` are read from it.

        ``None``: those of ``wanted`` that it passes on, and those that its fields name.
        """
        return None

    def filters(self) -> Sequence[exp.Expr]:
        """Return the conditions over its input that a row has to satisfy, in their order."""
        return ()

    def projection(self) -> Mapping[str, exp.Expr] | None:
        """Return each column as an expression over its input, if a row gives at most one row; else ``None``."""
        return None

    def row_expressions(self) -> Iterable[exp.Expr]:
        """Return the expressions that it computes for each row of its first input that passes its filters."""
        return ()

    def row_values(self) -> Mapping[str, exp.Expr]:
        """Return those of its `row_expressions` that its rows have as columns in a tick that is tried row by row."""
        return {}

    def null_at_first(self, name: str) -> bool:
        """Return True if a column may be NULL only in the first rows: it comes from a window that is empty there."""
        return len(self.inputs) == 1 and name in self.inputs[0].emits().names and self.inputs[0].null_at_first(name)

    def origin(self, column: str) -> Origin | None:  # noqa: ARG002 - the operator's
        """Return where a column comes from, under the same rowtime; ``None`` if unknown."""
        return None

    def event_of_rows(self) -> EventTime | None:
        """Return the event time of its rows, even if nothing above learns its bounds from them."""
        return self.emits().event

    def fires(self) -> FireColumns | None:
        """Return the columns of pane fires, if each row is one; by default the input's if it keeps these or places."""
        return self.inputs[0].fires() if self.keeps_fires or (self.keeps_places and len(self.inputs) == 1) else None

    @classmethod
    def is_settable(cls, fields: Mapping[str, Any]) -> bool:  # noqa: ARG003 - the operator's
        """Return True if the bound of an operator with these stored fields may be set manually."""
        return cls.promotes

    def opens_events(self) -> bool:
        """Return True if each event first comes without an end, as those of edges do."""
        return any(child.opens_events() for child in self.inputs)

    def gives_groups(self) -> bool:
        """Return True if its rows are groups as `finishes_groups` defines them."""
        if self.finishes_groups is not None:
            return self.finishes_groups
        return len(self.inputs) == 1 and self.inputs[0].gives_groups()

    def marks(self) -> Mapping[str, tuple[Ordered | RunningMark, Fact | None]]:
        """Return its marks by name: the operator that keeps each for clocks, and the fact about it."""
        return {}

    def listed(self) -> Sequence[Any]:
        """Return the select list (`Item`) whose orders follow from those of its input; EXPLAIN proves them."""
        return ()

    def timed_by(self, below: Sequence[frozenset[str]]) -> frozenset[str]:
        """Return the streams whose arrival clocks release its rows; ``below``: those of its inputs."""
        return frozenset() if self.has_own_time else frozenset().union(*below)

    def begins_now(self) -> bool:
        """Return True if an upgraded plan may have it as new although it holds rows: those read from then on."""
        return False

    def found_by_name(self) -> bool:
        """Return True if its name matters outside: for a log, files, row numbers. Only this name continues it."""
        return False

    def may_change(self) -> Mapping[str, str]:
        """Return the fields that may change at any tick, and their names for users."""
        return {}

    def kept_promises(self, control: Mapping[str, Any], clocks: Clocks) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the scalars that keep its earlier promises valid if it continues with another tolerance."""
        return {}

    def typed(self, rows: Callable[[Operator], Frame]) -> Frame:
        """Return an empty Frame with its columns, with Spark's types; ``rows`` gives an empty input."""
        return rows(self.inputs[0])

    def between(self, rows: Callable[[Operator], Frame]) -> list[Frame]:  # noqa: ARG002 - the operator's
        """Return the empty tables between its inputs and its result over which it has expressions."""
        return []

    def renames_for(self, types: Mapping[str, str]) -> dict[str, str] | None:  # noqa: ARG002 - the operator's
        """Return its columns' names below, if it only renames rows of these types; else ``None``.

        A missing name is the same below.
        """
        return None

    def reads_once(self) -> bool:
        """Return True if its step reads each input row at most once, so that computing them beforehand is useless."""
        return False

    def files_are_results(self, *, ordered: bool, at_once: bool) -> bool:  # noqa: ARG002 - the operator's
        """Return True if a directory may take over the files of its results.

        ``ordered``: they have to be in stream order. ``at_once``: its query ends with it.
        """
        return False

    def asks_changes(self, *, above: bool) -> bool:  # noqa: ARG002 - the operator's
        """Return whether it needs each change of the events below, or only the state after a tick.

        ``above``: whether one of its own consumers needs each change.
        """
        return True

    def final_columns(self, taken: Mapping[str, str]) -> dict[str, str] | None:  # noqa: ARG002 - the operator's
        """Return which columns of an event below are the columns of a final event in a directory.

        ``taken``: the same for its own columns. ``None`` if such an event is not one row, or if the operator does not
        emit events.
        """
        return None

    def distribution(self) -> Distribution | ByKeys:
        """Return how the rows of its inputs may be distributed over the tasks of a tick."""
        return Distribution.SINGLE

    def combined(self, tick: Tick, delta: Delta) -> Delta:  # noqa: ARG002 - the operator's
        """Return what goes from a part of its input's rows to the task that has all: them, or partial results."""
        return delta

    def gathered(self, tick: Tick, delta: Delta, parts: Sequence[Gathered]) -> Delta:
        """Remember the scalars that the tasks of its keys agree about; return what they have left to the task of all.

        ``delta``: what each of them has given, without rows, which are passed on in any case. Raises ``DiffersError``.
        """
        tick.remember(self, **vars(agreed(self.name, parts)))
        return delta

    @abstractmethod
    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Return the results of one tick."""


@dataclass(frozen=True)
class Unary(Operator):
    """An operator with one input, whose columns and bounds it passes on by default."""

    name: str
    input: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return the one input."""
        return (self.input,)

    def emits(self) -> Shape:
        """Return the shape of the input."""
        return self.input.emits()

    def promises(self, clocks: Sequence[Clocks], control: Any) -> Clocks:  # noqa: ARG002 - the operator's
        """Return the bounds of the input."""
        return clocks[0]


@dataclass(frozen=True)
class Binary(Operator):
    """An operator with two inputs."""

    name: str
    left: Operator
    right: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Return both sides."""
        return (self.left, self.right)
