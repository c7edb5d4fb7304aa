"""The operator: a frozen plan node that says what it needs, keeps, emits and promises.

An operator file reads in this order: ``requires``, ``keeps``, ``emits``, ``promises``, ``step``. The first four are
pure Python on facts and scalars: the planner, EXPLAIN and the running tick all use the same ones. ``step`` turns the
new rows of a tick (DataFrames) into results; it is the only place that touches Spark.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from rowtime.core.clock import Clocks, least
from rowtime.expr.facts import Fact
from rowtime.operators.contract.edge import Column, Delta, EventTime, Origin, Shape
from rowtime.operators.contract.fires import FiresTold
from rowtime.operators.contract.lineage import Link, Made, Pairs, named
from rowtime.operators.contract.requirement import UNORDERED, Requirement
from rowtime.operators.contract.state import Control, StateNote
from rowtime.operators.contract.tick import Tick

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from sqlglot import exp

    from rowtime.operators.order.ordered import Ordered
    from rowtime.operators.over.over_calls import RunningMark


class Operator(ABC):
    """A plan node. What most operators have in common stands here; each says in its own file where it differs."""

    kind: ClassVar[str]
    decides: ClassVar[str] = "FILTER"
    """What the columns do that decide about rows (`decided_by`), in OpenLineage's words."""
    promise: ClassVar[str] = ""
    """Which bound goes downstream, in words; empty where it is the identity or the least."""
    reason: ClassVar[str] = ""
    """Why the promise holds, in one sentence; empty where it is the identity or the least."""

    needs: ClassVar[tuple[Requirement, ...]] = ()
    """What each input must give, if that is the same in every plan; empty for nothing, or where `requires` says it."""
    same_below: ClassVar[tuple[str, ...] | None] = None
    """The hidden columns that a row has in common with the one that it is made of; ``None`` where `link` says more."""
    finishes_groups: ClassVar[bool | None] = None
    """Whether its rows are groups that leave when they are final, of which nobody asks for an order.

    ``None``: if those of its one input are.
    """

    keeps_versions: ClassVar[bool] = False
    """True if the operator keeps events where it works on versions of them."""
    numbers_changes: ClassVar[bool] = False
    """True if the operator numbers the changes of events, by which those above tell them apart."""
    cuts_time: ClassVar[bool] = False
    """True if it makes results of every part of an event's time, which are endless if the event is."""
    final_only: ClassVar[bool] = False
    """True if its results are made once, when they are final, so that EMIT CHANGES cannot show them earlier."""
    writes_final: ClassVar[bool] = False
    """True if events that are final can go to a file of their own, which a directory takes."""

    is_gate: ClassVar[bool] = False
    """True if the operator is there to refuse rows."""
    computes: ClassVar[bool] = False
    """True if a query may end with it whose rows are refused where they cannot be computed."""
    fuses: ClassVar[bool] = False
    """True if its expressions may be computed in one step with those of a projection below it."""
    in_traces: ClassVar[bool] = True
    """True if the trace of a row lists the operator's own rows."""
    at_edge: ClassVar[bool] = False
    """True if it is between the query of a pump and its target."""

    has_own_time: ClassVar[bool] = False
    """True if its rows come out by a time of their own, and by no clock of arrivals."""
    holds_itself: ClassVar[bool] = False
    """True if the bound that it promises holds its rows back; else those of its inputs do."""
    keeps_places: ClassVar[bool] = False
    """True if its rows are in the order and the places of its input's, which a merge below it can make."""
    begins_anywhere: ClassVar[bool] = False
    """True if a plan that goes on may have it again: its results are those of the rows from there on."""

    keeps_rows_alone: ClassVar[bool] = False
    """True if it keeps at most rows on their way and marks of rows that went by: it may get others from a tick on."""
    compares: ClassVar[tuple[str, ...]] = ()
    """Its fields by which it compares rows with those that went by."""
    of_results: ClassVar[tuple[str, ...]] = ()
    """Its fields that say what becomes of results as they go out: they may be others from a tick on."""

    control: ClassVar[type[Control]] = Control
    """The class of its scalars, declared in its own file."""
    holds_results: ClassVar[bool] = False
    """True if what it holds are partial results, each of which is whole at its end."""

    awaits_event: ClassVar[bool] = False
    """True if the bound of an event time, its second input, lets its rows out."""
    passes_bounds: ClassVar[bool] = False
    """True if it passes the bounds of an event time, its second input, on among its rows."""
    promotes: ClassVar[bool] = False
    """True if its rows have a rowtime of which the bounds below say nothing."""
    merges_writers: ClassVar[bool] = False
    """True if none of its writers is one of its input's."""
    side_by_side: ClassVar[bool] = False
    """True if its writers are those of its inputs, with the numbers of these before their names."""

    name: str
    """Unique in its plan and stable from run to run."""

    if TYPE_CHECKING:  # a field or a property: a field must not find a property in its base

        @property
        def inputs(self) -> tuple[Operator, ...]:
            """The operators that this one reads."""
            ...

    def requires(self) -> tuple[Requirement, ...]:
        """What each input must give: order, or nothing."""
        return self.needs or (UNORDERED,) * len(self.inputs)

    def keeps(self) -> tuple[StateNote, ...]:
        """What is kept from tick to tick, and what bounds it."""
        return ()

    @abstractmethod
    def emits(self) -> Shape:
        """What the output edge carries."""

    def promises(self, clocks: Sequence[Clocks], control: Any) -> Clocks:  # noqa: ARG002 - the operator's
        """The output's bounds, by those of its inputs and its scalars; by itself the least, as one writer's."""
        return {"": min(least(one.values()) for one in clocks)}

    def link(self, n: int) -> Link:
        """Which rows of its n-th input can have made one of its rows; all of them where nothing is said."""
        return Link() if self.same_below is None else Link(self.passed_on(n, *self.same_below))

    def unchanged(self, n: int) -> Link:
        """The link of a row that an operator passes on as it came."""
        below = self.inputs[n].emits().internals
        return Link(self.passed_on(n, *(name for name in self.emits().internals if name in below)))

    def passed_on(self, n: int, *ours: str) -> Pairs:
        """The columns that its rows and those of its n-th input have, and these of ours."""
        below = self.inputs[n].emits()
        names = [name for name in self.emits().names if name in below.names]
        return named([(name, name) for name in (*names, *ours)])

    def made_from(self, n: int, column: str) -> Made | None:
        """From which columns of its n-th input one of its columns is made; ``None`` if any of them may have a part."""
        mine, *others = self.inputs[n], *(one for number, one in enumerate(self.inputs) if number != n)
        if column in mine.readable() or column in mine.emits().internals:
            return Made((column,))
        return Made(()) if any(column in one.readable() for one in others) else None

    def decided_by(self, n: int) -> Iterable[str] | None:
        """The columns of its n-th input that decide which rows go on, or together; here: all that it reads anyway."""
        return self.required_columns(n, ())

    def on_versions(self, below: Sequence[Operator]) -> Operator:  # noqa: ARG002 - the operator's
        """What works as it does on the versions of events that ``below`` give, for EMIT CHANGES."""
        raise TypeError(f"{self.kind}: it has no form for versions")

    def beneath_keeping(self) -> Operator:
        """The same on versions, where what keeps events is above."""
        return self

    @classmethod
    def passes_each(cls, fields: Mapping[str, Any]) -> bool:  # noqa: ARG003 - the operator's
        """True if each row that comes in, or that it accepts as a gate, goes out once; by its stored ``fields``."""
        return False

    @classmethod
    def drops_rows(cls, fields: Mapping[str, Any]) -> bool:  # noqa: ARG003 - the operator's
        """True if it is a filter over the rows that come in; by its stored ``fields``."""
        return False

    @classmethod
    def holding(cls, fields: Mapping[str, Any], control: Mapping[str, Any]) -> str:  # noqa: ARG003 - the operator's
        """What it waits for beside a clock, in words; by its stored ``fields`` and what the journal has as scalars."""
        return ""

    def refuses(self) -> bool:
        """True if ``name.rejected`` has the rows that it refuses."""
        return self.is_gate

    def refused_columns(self) -> tuple[Column, ...]:
        """The user's columns of the rows that it refuses."""
        return self.inputs[0].emits().of_users if self.inputs else self.emits().of_users

    def imports_from(self) -> str | None:
        """The event stream whose bounds it gives and whose arrival clocks it knows; ``None`` for no such stream."""
        return None

    def checks_declared(self) -> bool:
        """True for a gate that checks what the definition of a stream says of its rows."""
        return False

    def checks_pump(self, pump: str) -> bool:  # noqa: ARG002 - the operator's
        """True for a gate on the way of that pump to its target."""
        return False

    def readable(self) -> frozenset[str]:
        """The columns that an operator above may read: those that it emits, and those that are there for it alone."""
        return frozenset(self.emits().names)

    def required_columns(self, n: int, asked: Collection[str]) -> Iterable[str] | None:  # noqa: ARG002 - the operator's
        """The columns of its n-th input that it reads if ``asked`` are read of its own.

        ``None``: those of ``asked`` that it passes on, and those that its fields name.
        """
        return None

    def filters(self) -> Sequence[exp.Expr]:
        """The conditions over its input that a row has to satisfy, in their order."""
        return ()

    def projection(self) -> Mapping[str, exp.Expr] | None:
        """What each of its columns is over its input, if it makes at most one row of each; else ``None``."""
        return None

    def row_expressions(self) -> Iterable[exp.Expr]:
        """What it computes of each row of its first input that passes its filters."""
        return ()

    def may_fail_later(self) -> bool:
        """True if something of its rows that may fail is computed only where somebody asks for it."""
        return not self.holds_results and any(one.may_fail_later() for one in self.inputs)

    def null_at_first(self, name: str) -> bool:
        """True if a column may be NULL in the first rows alone: it comes from a window that is empty there."""
        return len(self.inputs) == 1 and name in self.inputs[0].emits().names and self.inputs[0].null_at_first(name)

    def origin(self, column: str) -> Origin | None:  # noqa: ARG002 - the operator's
        """Where one of its columns comes from, under the same rowtime; ``None`` if that is not known."""
        return None

    def event_of_rows(self) -> EventTime | None:
        """The event time that its rows have, even if nobody above learns its bounds from them."""
        return self.emits().event

    def fires(self) -> FiresTold | None:
        """What its rows tell of the fires of panes, if each of them is one; by itself where it keeps their places."""
        return self.inputs[0].fires() if self.keeps_places and len(self.inputs) == 1 else None

    @classmethod
    def is_settable(cls, fields: Mapping[str, Any]) -> bool:  # noqa: ARG003 - the operator's
        """True if the bound of one with these stored fields may be set by hand."""
        return cls.promotes

    def opens_events(self) -> bool:
        """True if each of its events comes without an end before it has one, as those of edges do."""
        return any(one.opens_events() for one in self.inputs)

    def gives_groups(self) -> bool:
        """True if its rows are groups as `finishes_groups` has them."""
        if self.finishes_groups is not None:
            return self.finishes_groups
        return len(self.inputs) == 1 and self.inputs[0].gives_groups()

    def marks(self) -> Mapping[str, tuple[Ordered | RunningMark, Fact | None]]:
        """The marks that it has, by their names: what keeps them for clocks, and what is known of them."""
        return {}

    def listed(self) -> Sequence[Any]:
        """The select list (`Item`) whose orders follow from those of its input; EXPLAIN proves them."""
        return ()

    def timed_by(self, below: Sequence[frozenset[str]]) -> frozenset[str]:
        """The streams by whose arrival clocks its rows come out; ``below``: those of its inputs."""
        return frozenset() if self.has_own_time else frozenset().union(*below)

    def begins_now(self) -> bool:
        """True if a plan that goes on may have it again, though it holds rows: of those read from then on."""
        return False

    def found_by_name(self) -> bool:
        """True if something outside is found by its name: a log, files, numbers of rows. Nothing else goes on as it."""
        return False

    def is_addition(self) -> bool:
        """True for a gate that older versions did not put there, though rows might have been refused."""
        return False

    def may_change(self) -> Mapping[str, str]:
        """The fields that may have another value from a tick on, and what people call them."""
        return {}

    def kept_promises(self, control: Mapping[str, Any], clocks: Clocks) -> Mapping[str, Any]:  # noqa: ARG002
        """What its scalars have to say of what it has promised, where it goes on with another tolerance."""
        return {}

    def typed(self, rows: Callable[[Operator], DataFrame]) -> DataFrame:
        """No rows with its columns, of which Spark says the types; ``rows``: no rows of an input."""
        return rows(self.inputs[0])

    def between(self, rows: Callable[[Operator], DataFrame]) -> list[DataFrame]:  # noqa: ARG002 - the operator's
        """The tables without rows that are between its inputs and its result, over which it has expressions."""
        return []

    def renames_for(self, types: Mapping[str, str]) -> dict[str, str] | None:  # noqa: ARG002 - the operator's
        """What each of its columns is called below, if it does no more than that to rows of these types; else ``None``.

        A name that is not there is the same below.
        """
        return None

    def reads_once(self) -> bool:
        """True if its step asks for each row of an input once at most, so that nobody need compute them beforehand."""
        return False

    def files_are_results(self, *, ordered: bool, at_once: bool) -> bool:  # noqa: ARG002 - the operator's
        """Whether a directory may take the files of its results as they are.

        ``ordered``: they have to be in stream order. ``at_once``: its query ends with it.
        """
        return False

    def asks_changes(self, *, above: bool) -> bool:  # noqa: ARG002 - the operator's
        """Whether it asks for each change of the events below, or only for what they have come to after a tick.

        ``above``: whether one of its own consumers asks for each change.
        """
        return True

    def final_columns(self, taken: Mapping[str, str]) -> dict[str, str] | None:  # noqa: ARG002 - the operator's
        """Which columns of an event below are those that a directory takes of an event that is final.

        ``taken``: which of the operator's own they are. ``None`` where such an event is not one row, and where the
        operator gives no events out.
        """
        return None

    @abstractmethod
    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """The results of one tick."""


@dataclass(frozen=True)
class Unary(Operator):
    """An operator of one input, whose columns and bounds it passes on unless it says otherwise."""

    name: str
    input: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """The one input."""
        return (self.input,)

    def emits(self) -> Shape:
        """What the input carries."""
        return self.input.emits()

    def promises(self, clocks: Sequence[Clocks], control: Any) -> Clocks:  # noqa: ARG002 - the operator's
        """The bounds of the input."""
        return clocks[0]


@dataclass(frozen=True)
class Binary(Operator):
    """An operator of two inputs."""

    name: str
    left: Operator
    right: Operator

    @property
    def inputs(self) -> tuple[Operator, ...]:
        """Both sides."""
        return (self.left, self.right)


def walk(root: Operator) -> Iterator[Operator]:
    """Every operator below and including ``root``, inputs first, each once."""
    seen: set[str] = set()

    def visit(node: Operator) -> Iterator[Operator]:
        if node.name in seen:
            return
        seen.add(node.name)
        for child in node.inputs:
            yield from visit(child)
        yield node

    return visit(root)
