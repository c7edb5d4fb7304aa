"""Upgrades: how the plan of a checkpoint may change, and what becomes of the state of each operator.

An operator of the new plan *continues* the old one that computes the same from the same inputs, whatever the two are
called; a tolerance may differ. One that is new starts with a copy if an old operator computes the same; with nothing
if it keeps nothing, if all that it reads is new, or if it only puts rows in order, which then are those that are read
from the change on. Else it would need rows of the past, and the plan is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from rowtime.core.errors import Refused, refuse
from rowtime.operators.contract import Operator, walk
from rowtime.operators.hop import Hop
from rowtime.operators.merge import Merge
from rowtime.operators.pump_gate import PumpGate
from rowtime.operators.rejected import Rejected
from rowtime.operators.select import Select
from rowtime.operators.sink import Sink
from rowtime.operators.stream import Stream
from rowtime.operators.table import Table
from rowtime.operators.table_join import TableJoin
from rowtime.operators.tsort import TSort
from rowtime.plan.canonical import describe, without_secrets
from rowtime.plan.difference import difference, owner_of, statements_of
from rowtime.plan.program import Program
from rowtime.plan.pump_edge import PumpEdge
from rowtime.plan.retyped import below, changes, declared, same_rows, unfit

Plan = Mapping[str, Any]
STATELESS = (Sink, Select, Rejected, Hop, TableJoin, PumpGate)
"""What may begin at any row: its results are those of the rows from there on."""
TOLERANCES: Mapping[type, Mapping[str, str]] = {
    TSort: {"within": "WITHIN", "early": "EARLY BEYOND", "ahead": "EARLY BEYOND … AFTER ARRIVAL"},
    Stream: {"early": "EARLY BEYOND", "ahead": "EARLY BEYOND … AFTER ARRIVAL"},
}
"""Fields (µs) that may have another value from a tick on, and what they are called."""
PASSING = ("console", "memory", "function")  # formats that keep nothing of what was handed over
_TARGET = re.compile(r"format=.*(?=; ordered=)")
_OWN_TARGET = (
    "Declare it as it was; or define a new target, with a directory, topic or table of its own, and write to it with a "
    "pump of another name in the place of this one."
)
_OWN_PIPELINE = "Give it a script and a --checkpoint of its own, which read the streams from their start."


@dataclass(frozen=True)
class Upgrade:
    """How one plan follows another.

    ``continues``: for operators of the new plan, the old one whose state they have; ``marks``: the same of the names
    by which the marks of running calls are known. ``copies``: the old one with a copy of whose state they start.
    ``eased``: those of the new plan with another tolerance, and what it was and is. ``new`` and ``gone``: operators
    that only one of the plans has. ``lines``: all of it as people read it.
    """

    continues: Mapping[str, str]
    marks: Mapping[str, str]
    copies: Mapping[str, str]
    eased: Mapping[str, str]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    lines: tuple[str, ...]


def upgrade_of(old: Plan, program: Program) -> Upgrade | None:
    """What changes where a checkpoint with the ``old`` plan goes on with a program; ``None`` for nothing.

    Raises ``Refused`` (R401) with the statement that differs where the state does not fit the new plan.
    """
    old = without_secrets(old)
    if program.is_of(old):
        return None
    matching = _Matching(old, program)
    matching.match()
    admission = _Admission(old, program, matching)
    admission.admit()
    gone = tuple(name for name in old["operators"] if name not in matching.taken)
    new = tuple(node.name for node in program.operators if node.name not in matching.continues)
    lines = tuple(_lines(old, program, matching, admission, gone))
    return Upgrade(matching.continues, matching.marks, admission.copies, matching.eased, new, gone, lines)


def check_same(old: Plan | None, program: Program) -> None:
    """Raise ``Refused`` (R401) unless a program is what the checkpoint was made for, or goes on with."""
    if old is not None and not program.is_of(old):
        raise _refused(old, program, ())


def retired(old: Plan, upgrade: Upgrade) -> dict[str, str]:
    """The sinks that were gone at some time, by name, with what they wrote to; of the old plan and those before it."""
    gone = (name for name in upgrade.gone if old["kinds"][name] == Sink.kind)
    return {**old.get("retired", {}), **{name: _target(old["operators"][name]) for name in gone}}


# -- which old operator is which new one ----------------------------------------------


class _Matching:
    """Finds for operators of a program, inputs first, the old one that they continue."""

    def __init__(self, old: Plan, program: Program) -> None:
        self._old: Mapping[str, str] = old["operators"]
        self.former = "spelling" not in old
        self._nodes = program.operators
        # A plan from before pumps cast and checked what they write: these begin with the rows from now on.
        self._edges = tuple(edge for edge in program.edges if "edges" not in old or self._has_new_gate(edge))
        self.through: dict[str, str] = {}  # their operators, and the old one that stood in the place of each
        self.sunk: dict[str, str] = {}  # the same for sinks
        self._targets = declared(old["sql"]) if "edges" in old else {}
        self._program = program
        self._above: dict[str, dict[str, str]] = {}  # the same for what stands above the edge of a retyped target
        # Operators of pumps whose targets have rows that do not bear another declaration: the pump, and why.
        self.unfit: dict[str, tuple[str, str]] = {}
        self.retyped: dict[str, str] = {}  # targets that are declared otherwise, in words
        self.continues: dict[str, str] = {}
        self.marks: dict[str, str] = {}
        self.eased: dict[str, str] = {}

    def _has_new_gate(self, edge: PumpEdge) -> bool:
        """True for a gate that only looks at what a table takes, which older plans have not."""
        gates = (node for node in edge.operators if isinstance(node, PumpGate) and node.limited)
        return any(node.name not in self._old for node in gates)

    @property
    def taken(self) -> set[str]:
        """The old operators that are continued."""
        return set(self.continues.values())

    def match(self) -> None:
        """Names first, so that nobody else takes what is still called the same; then one rename after the other."""
        self._match_names()
        while any(self._match_renamed(node) for node in self._open()) or self._pass_edges() or self._pass_targets():
            self._match_names()

    def _pass_edges(self) -> bool:
        """Let what reads a new edge of a pump find what it read before; True if there was one.

        A merge that checks of an order need puts the rows in order for the sink as well: it has those that wait there.
        """
        known = len(self.through)
        for edge in self._edges:
            there = self.continues.get(edge.node.name)
            before = f"{edge.pump}.sink.merge"
            held = before in self._old and not any(node.name == before for node in self._nodes)
            for node in edge.operators if there is not None else ():
                if held and isinstance(node, Merge) and before not in self.taken:
                    self.continues[node.name] = before
                if node.name not in self.continues:
                    own = node.name in self._old and node.name not in self.taken
                    self.through[node.name] = node.name if own else str(there)
                if before in self.taken:
                    self.sunk[node.name] = before
        return len(self.through) > known

    def _pass_targets(self) -> bool:
        """Let pumps go on whose targets are declared otherwise, where the rows that are there bear it."""
        passed = len(self._above)
        for edge in self._program.edges:
            sink, was = f"{edge.pump}.sink", self.continues.get(edge.node.name)
            before, after = self._targets.get(edge.target), self._program.catalog.stream(edge.target)
            if was is None or before is None or after is None or sink in self.continues or sink in self._above:
                continue
            stood = below(self._old, sink, was)
            words = ", ".join(changes(before, after)) if not (why := unfit(before, after)) else ""
            if why:
                self.unfit |= dict.fromkeys((sink, *(node.name for node in edge.operators)), (edge.pump, why))
            if stood is None or not words:
                continue
            self.retyped[edge.target] = words
            self._stand_in(edge, sink, [name for name in stood if name != f"{sink}.merge"] or [was])
        return len(self._above) > passed

    def _stand_in(self, edge: PumpEdge, sink: str, stood: Sequence[str]) -> None:
        """Let the operators of an edge stand where those ``stood`` that were there, from above."""
        for node in edge.operators:
            if self._old.get(node.name, "").startswith(f"{node.kind}("):
                self.continues.setdefault(node.name, node.name)  # its counts go on
            else:
                self.through.setdefault(node.name, stood[0])
        top = [edge.node, *edge.operators][-1].name
        self._above |= {name: {top: stood[0]} for name in (sink, f"{sink}.merge")}

    def _open(self) -> Iterator[Operator]:
        return (node for node in self._nodes if node.name not in self.continues)

    def _match_names(self) -> None:
        for node in self._open():
            if node.name in self._old and node.name not in self.taken:
                self._take(node, node.name)

    def _match_renamed(self, node: Operator) -> bool:
        """Streams and sinks are what they are called: by their names logs, files and numbers of rows are found."""
        if isinstance(node, Stream) or (isinstance(node, Sink) and node.format != "console"):
            return False
        text = self._text(node)
        free = [name for name in self._old if name not in self.taken]
        same = [name for name in free if self._old[name] == text]
        return any(self._take(node, name) for name in [*same, *free])

    def _take(self, node: Operator, name: str) -> bool:
        """Let an operator continue the old one of a name, if it can."""
        was = self._old[name]
        before = _with_tolerances(node, was)
        if not any(self._is(one, was) for one in (node, before)):
            if not (isinstance(node, Stream) and same_rows(str(self._text(node)), was)):
                return False
            self.retyped[node.name] = "CHECK or NOT NULL of its rows has changed"
            before = node
        self.continues[node.name] = name
        if self._text(node) != self._text(before):
            self.eased[node.name] = ", ".join(_changes(before, node))
        return True

    def _text(self, node: Operator) -> str | None:
        sunk = self.sunk if isinstance(node, Sink) else {}
        above = self._above.get(node.name, {})
        return text_of(node, {**self.continues, **self.through, **sunk, **self.marks, **above}, former=self.former)

    def _is(self, node: Operator, was: str) -> bool:
        """True if an operator is what an old description says, but for the names of its marks."""
        text, marks = self._text(node), [call.mark for call in getattr(node, "calls", ()) if call.mark]
        if text is None or not marks:
            return text == was
        parts = re.split("|".join(re.escape(f", {mark})") for mark in marks), text)
        found = re.fullmatch(r", ([^ ,;()]+)\)".join(map(re.escape, parts)), was)
        self.marks |= dict(zip(marks, found.groups(), strict=True)) if found else {}
        return found is not None


def text_of(node: Operator, names: Mapping[str, str], *, former: bool = False) -> str | None:
    """The description of an operator with its inputs under old names; ``None`` where one has none."""
    if not all(child.name in names for child in node.inputs):
        return None
    return describe(node, names, former=former)


def _with_tolerances(node: Operator, was: str) -> Operator:
    """The operator with the tolerances of an old description, where both have one.

    With RESYNC rows are held and judged later, by what was said when they came: it stays as it is.
    """
    fields = TOLERANCES.get(type(node), {})
    if getattr(node, "resync", 0):
        return node
    found = {name: re.search(rf"; {name}=(\d+)[;)]", was) for name in fields}
    values = {name: int(at[1]) for name, at in found.items() if at and getattr(node, name) is not None}
    return replace(node, **values) if values else node  # type: ignore[type-var]


def _changes(before: Operator, after: Operator) -> Iterator[str]:
    for name, words in TOLERANCES[type(after)].items():
        was, now = getattr(before, name), getattr(after, name)
        if was != now:
            yield f"{words} {timedelta(microseconds=was)} is {timedelta(microseconds=now)}"


# -- what is new ----------------------------------------------------------------------


class _Admission:
    """Says of each operator without a predecessor how it can start; raises ``Refused`` (R401) where it cannot."""

    def __init__(self, old: Plan, program: Program, matching: _Matching) -> None:
        self._old, self._program, self._matching = old, program, matching
        self._fresh: set[str] = set()  # nothing of the past has gone by: what they read begins with them
        self.copies: dict[str, str] = {}
        self.begins: set[str] = set()  # merges that hold none of the rows that were read before

    def admit(self) -> None:
        """Look at all of them, inputs first; before that at topics, whose rows are put in order by what is new."""
        for sink in self._program.sinks:
            if sink.format == "kafka" and sink.name not in self._matching.continues:
                self._check_topic(sink)
        for node in self._program.operators:
            if node.name not in self._matching.continues:
                self._admit(node)

    def _admit(self, node: Operator) -> None:
        if isinstance(node, Stream | Table | Sink) and node.name in self._old["operators"]:
            raise self._refused(node)
        if isinstance(node, Sink):
            self._check_sink(node)
        twin = self._twin(node)
        if twin is not None:
            self.copies[node.name] = twin
        elif all(child.name in self._fresh for child in node.inputs):
            self._fresh.add(node.name)
        elif isinstance(node, Merge) and not node.numbers:
            self.begins.add(node.name)
        elif not isinstance(node, STATELESS) and node.name not in self._matching.through:
            raise self._refused(node)

    def _twin(self, node: Operator) -> str | None:
        """An old operator that has computed the same all along."""
        if isinstance(node, Stream | Sink):
            return None
        known = {**self._matching.continues, **self._matching.through, **self._matching.marks}
        text = text_of(node, {**known, **self.copies}, former=self._matching.former)
        return next((name for name, was in self._old["operators"].items() if was == text), None)

    def _check_sink(self, node: Sink) -> None:
        """A sink that is gone leaves its name and its target behind: rows there are numbered under that name."""
        old, target = self._old, _target(describe(node, former=self._matching.former))
        gone = [name for name, kind in old["kinds"].items() if kind == Sink.kind and name not in self._matching.taken]
        known = {**old.get("retired", {}), **{name: _target(old["operators"][name]) for name in gone}}
        same = [name for name, its in known.items() if its == target and node.format not in PASSING]
        if known.get(node.name, target) != target or (same and node.name not in same):
            who = _shown(node.name if node.name in known else same[0])
            what = f"{_shown(node.name)} is new, and {who}, which is gone, has left rows under its name"
            hint = "Let a pump keep its name and its target; give a new one others."
            raise refuse("R401", f"the checkpoint belongs to another query: {what}", hint)

    def _check_topic(self, node: Sink) -> None:
        """The pumps into one topic share its order and its numbers, so that no pump can come or go (R446)."""
        target = _target(describe(node, former=self._matching.former))
        gone = (name for name, kind in self._old["kinds"].items() if kind == Sink.kind)
        same = [_shown(name) for name in gone if _target(self._old["operators"][name]) == target and name != node.name]
        if same:
            what = f"{' and '.join(same)} wrote into the topic of {_shown(node.name)}, whose pumps are others now"
            hint = (
                "Run the pumps it was made for; or start with a new --checkpoint and --take-over, which goes on behind "
                "the numbers and the bound that the topic has."
            )
            raise refuse("R446", what, hint)

    def _refused(self, node: Operator) -> Refused:
        if node.name in self._matching.unfit:
            pump, why = self._matching.unfit[node.name]
            return refuse("R401", f"the target of {pump} has changed: {why}", _OWN_TARGET)
        changed = (part for part in walk(node) if part.name not in self._matching.continues)
        return _refused(self._old, self._program, [*changed])


def _target(text: str) -> str:
    found = _TARGET.search(text)
    return found[0] if found else text


def _refused(old: Plan, program: Program, nodes: Iterable[Operator]) -> Refused:
    """R401 for operators, inputs first, that do not follow from the old plan; the last of them cannot start."""
    what, new = difference(old, program, list(nodes))
    hint = (
        _OWN_PIPELINE
        if new
        else "Run the query it was made for, or give this one a --checkpoint of its own and other names for its pumps."
    )
    return refuse("R401", f"the checkpoint belongs to another query: {what}", hint)


# -- as people read it ----------------------------------------------------------------


def _lines(
    old: Plan, program: Program, matching: _Matching, admission: _Admission, gone: tuple[str, ...]
) -> Iterator[str]:
    before, after = statements_of(old["sql"]), statements_of(program.written)
    pairs = ((owner_of(was, before), owner_of(now, after)) for now, was in matching.continues.items())
    yield from dict.fromkeys(f"{was} is called {now}" for was, now in pairs if was != now)
    yield from (f"{name}: {what}" for name, what in (*matching.eased.items(), *matching.retyped.items()))
    for sink in program.sinks:
        if sink.name not in matching.continues:
            begins = any(part.name in admission.begins for part in walk(sink))
            yield f"{_shown(sink.name)} is new{', and begins with the rows read from now on' if begins else ''}"
    yield from (f"{_shown(name)} is gone" for name in gone if old["kinds"][name] == Sink.kind)


def _shown(sink: str) -> str:
    return sink.removesuffix(".sink").removesuffix(".result")
