"""Upgrades: how the plan of a checkpoint may change, and what happens to the state of each operator.

An operator of the new plan *continues* the old one that computes the same from the same inputs, even under another
name; a tolerance may differ. A new operator starts with a copy of the state if an old operator computes the same. It
starts empty if it keeps nothing, if all of its inputs are new, or if it only orders rows, which then are the rows read
after the change. Otherwise it would need rows of the past, and the plan is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from rowtime.core.errors import Refused, refuse
from rowtime.expr.store_assignment import always_fits, same_type
from rowtime.operators.contract import Operator, walk
from rowtime.operators.sinks.sink import Sink
from rowtime.plan.bind.pump_edge import PumpEdge
from rowtime.plan.bind.stream_defs import StreamDef, stream_of
from rowtime.plan.difference import difference, owner_of, parsed, statements_of
from rowtime.plan.program import Program
from rowtime.plan.row_by_row import RowByRow
from rowtime.plan.stored import Fields, StoredOperator, StoredPlan, micros_of
from rowtime.sql.statements import CreateStream

PASSING = ("console", "memory", "function")  # formats that do not store delivered rows
_OWN_TARGET = (
    "Declare it as it was. Or define a new target with its own directory, topic or table, and replace this pump "
    "with one of another name that writes to it."
)
_LET_OUT = (
    "Start the script as it was until they have gone out; a bound or the end of the stream releases them. Then "
    "change it. Or let the new script compute the history again: rowtime migrate FILE --checkpoint DIR."
)


@dataclass(frozen=True)
class Upgrade:
    """How one plan follows another.

    ``continues``: for operators of the new plan, the old one whose state they take; ``marks``: the same for the names
    of running calls' marks. ``copies``: the old one whose state they copy. ``eased``: operators of the new plan with
    another tolerance, the old and the new one. ``new`` and ``gone``: operators that only one of the plans has.
    ``lines``: all of this as text. ``paused``: old operators of stopped pumps, which stay as they are.
    """

    continues: Mapping[str, str]
    marks: Mapping[str, str]
    copies: Mapping[str, str]
    eased: Mapping[str, str]
    new: tuple[str, ...]
    gone: tuple[str, ...]
    lines: tuple[str, ...]
    paused: Mapping[str, StoredOperator]


def upgrade_of(old: StoredPlan, program: Program, held: Collection[str] | None = None) -> Upgrade | None:
    """Return the changes if a checkpoint with the ``old`` plan continues with a program; ``None`` if there are none.

    ``held``: the operators that hold rows; ``None`` if unknown, which counts as all. Raises ``Refused`` (R401) with the
    statement that differs if the state does not fit the new plan.
    """
    if is_same(old, program):
        return None
    whole = old.resumable()
    matching = _Matching(whole, program)
    matching.match()
    matching.changes = RowByRow(whole, program.operators, held)
    matching.changes.match(matching.continues)
    admission = _Admission(whole, program, matching)
    admission.admit()
    gone = tuple(name for name in old.operators if name not in matching.taken)
    new = tuple(node.name for node in program.operators if node.name not in matching.continues)
    lines = tuple(_lines(old, program, matching, admission, gone))
    still = paused(whole, program, matching.taken)
    return Upgrade(matching.continues, matching.marks, admission.copies, matching.eased, new, gone, lines, still)


def is_same(old: StoredPlan, program: Program) -> bool:
    """Return True if a program has the operators of a plan, the same stopped pumps and the same orders."""
    return {*old.stopped} == program.stopped and old.orders == program.orders and old.is_of(program.operators)


def check_same(old: StoredPlan | None, program: Program) -> None:
    """Raise ``Refused`` (R401) unless the checkpoint was made for a program, or continues with it."""
    if old is not None and not old.is_of(program.operators):
        raise _refused(old, program, ())


def retired(old: StoredPlan, upgrade: Upgrade) -> dict[str, Fields]:
    """Return the sinks that were removed by this or earlier upgrades, by name, with their targets."""
    return {**old.retired, **targets(old, upgrade.gone)}


def targets(old: StoredPlan, names: Collection[str]) -> dict[str, Fields]:
    """Return the targets of those operators of an old plan that are sinks."""
    return {name: old.operators[name].target for name in old.of_kind(Sink.kind) if name in names}


# -- which old operator is which new one ----------------------------------------------


class _Matching:
    """Finds for operators of a program, inputs first, the old one that they continue."""

    def __init__(self, plan: StoredPlan, program: Program) -> None:
        self._plan, self._old = plan, plan.operators
        self._nodes = program.operators
        # Operators of the edge of a retyped target, and the old one in the place of each.
        self.through: dict[str, str] = {}
        self._targets = declared(plan.sql)
        self._program = program
        self._above: dict[str, dict[str, str]] = {}  # the same for operators above such an edge
        # Operators of pumps whose target's rows do not fit the new declaration: the pump, and why.
        self.unfit: dict[str, tuple[str, str]] = {}
        self.retyped: dict[str, str] = {}  # targets with a changed declaration, in words
        self.continues: dict[str, str] = {}
        self.marks: dict[str, str] = {}
        self.eased: dict[str, str] = {}
        self.changes = RowByRow(plan, (), None)

    @property
    def taken(self) -> set[str]:
        """Return the old operators that are continued."""
        return set(self.continues.values())

    def match(self) -> None:
        """Match by name first, so that nobody else takes an operator that kept its name; then match the renames."""
        self._match_names()
        while any(self._match_renamed(node) for node in self._open()) or self._pass_targets():
            self._match_names()

    def _pass_targets(self) -> bool:
        """Let pumps continue whose target has a changed declaration that fits the existing rows."""
        passed = len(self._above)
        for edge in self._program.edges:
            sink, was = f"{edge.pump}.sink", self.continues.get(edge.node.name)
            before, after = self._targets.get(edge.target), self._program.catalog.stream(edge.target)
            if was is None or before is None or after is None or sink in self.continues or sink in self._above:
                continue
            operators = below(self._old, sink, was)
            words = ", ".join(changes(before, after)) if not (why := unfit(before, after)) else ""
            if why:
                self.unfit |= dict.fromkeys((sink, *(node.name for node in edge.operators)), (edge.pump, why))
            if operators is None or not words:
                continue
            self.retyped[edge.target] = words
            self._stand_in(edge, sink, [name for name in operators if name != f"{sink}.merge"] or [was])
        return len(self._above) > passed

    def _stand_in(self, edge: PumpEdge, sink: str, operators: Sequence[str]) -> None:
        """Let the operators of an edge take the place of the former ones, ``stood``, from above."""
        for node in edge.operators:
            if node.name in self._old and self._old[node.name].kind == node.kind:
                self.continues.setdefault(node.name, node.name)  # it keeps its counts
            else:
                self.through.setdefault(node.name, operators[0])
        top = [edge.node, *edge.operators][-1].name
        self._above |= {name: {top: operators[0]} for name in (sink, f"{sink}.merge")}

    def _open(self) -> Iterator[Operator]:
        return (node for node in self._nodes if node.name not in self.continues)

    def _match_names(self) -> None:
        for node in self._open():
            if node.name in self._old and node.name not in self.taken:
                self._take(node, node.name)

    def _match_renamed(self, node: Operator) -> bool:
        """Refuse other names for streams and sinks: logs, files and row numbers are found by these names."""
        if node.found_by_name():
            return False
        now = self._stored(node)
        free = [name for name in self._old if name not in self.taken and not self._waits(name)]
        same = [name for name in free if self._old[name] == now]
        return any(self._take(node, name) for name in [*same, *free])

    def _waits(self, name: str) -> bool:
        """Return True for an operator of a stopped pump, which continues it when it starts."""
        return any(f"{name}.".startswith(f"{pump}.") for pump in self._program.stopped)

    def _take(self, node: Operator, name: str) -> bool:
        """Let an operator continue the old one of a name, if possible."""
        was, now = self._old[name], self._stored(node)
        if now is None:
            return False
        changed = {part: words for part, words in node.may_change().items() if _may_differ(part, now, was)}
        before = replace(now, fields={**now.fields, **{part: was.fields[part] for part in changed}})
        if (marks := self._plan.marks(before, was)) is None:
            return False
        self.marks |= marks
        self.continues[node.name] = name
        if changed:
            self.eased[node.name] = ", ".join(_in_words(words, part, now, was) for part, words in changed.items())
        return True

    def _stored(self, node: Operator) -> StoredOperator | None:
        """Return an operator as the old plan would store it; ``None`` if an input did not exist."""
        above = self._above.get(node.name, {})
        return stored_as(self._plan, node, {**self.continues, **self.through, **self.marks, **above})


def stored_as(plan: StoredPlan, node: Operator, names: Mapping[str, str]) -> StoredOperator | None:
    """Return an operator as a plan would store it, with old input names; ``None`` if an input has none."""
    return plan.of(node, names) if all(child.name in names for child in node.inputs) else None


def _may_differ(part: str, now: StoredOperator, was: StoredOperator) -> bool:
    """Return True if both have a field, with different values."""
    values = [operator.fields.get(part) for operator in (now, was)]
    return None not in values and values[0] != values[1]


def _in_words(words: str, part: str, now: StoredOperator, was: StoredOperator) -> str:
    values = [operator.fields[part] for operator in (was, now)]
    if not all(isinstance(value, int | Mapping) for value in values):
        return f"{words} has changed"
    return f"{words} {' is '.join(str(timedelta(microseconds=micros_of(value) or 0)) for value in values)}"


# -- what is new ----------------------------------------------------------------------


class _Admission:
    """Decides how each operator without a predecessor can start; raises ``Refused`` (R401) if it cannot."""

    def __init__(self, old: StoredPlan, program: Program, matching: _Matching) -> None:
        self._old, self._program, self._matching = old, program, matching
        self._fresh: set[str] = set()  # no earlier rows have passed: their input begins with them
        self.copies: dict[str, str] = {}
        self.begins: set[str] = set()  # merges that hold no rows that were read before

    def admit(self) -> None:
        """Check all of them, inputs first; topics come first, because new operators order their rows."""
        for sink in self._program.sinks:
            if sink.format == "kafka" and sink.name not in self._matching.continues:
                self._check_topic(sink)
        for node in self._program.operators:
            if node.name not in self._matching.continues:
                self._admit(node)

    def _admit(self, node: Operator) -> None:
        sink = self._program.sink(node.name)
        if (sink or not node.inputs) and node.name in self._old.operators:
            raise self._refused(node)
        if sink:
            self._check_sink(sink)
        twin = self._twin(node)
        if twin is not None:
            self.copies[node.name] = twin
        elif all(child.name in self._fresh for child in node.inputs):
            self._fresh.add(node.name)
        elif node.begins_now():
            self.begins.add(node.name)
        elif not node.begins_anywhere and node.name not in self._matching.through:
            raise self._refused(node)

    def _twin(self, node: Operator) -> str | None:
        """Return an old operator that has always computed the same."""
        if node.found_by_name() or self._program.sink(node.name):
            return None
        matches = {**self._matching.continues, **self._matching.through, **self._matching.marks}
        now = stored_as(self._old, node, {**matches, **self.copies})
        return next((name for name, was in self._old.operators.items() if was == now), None)

    def _check_sink(self, node: Sink) -> None:
        """Check a sink: a removed one reserves its name and target, because rows there are numbered under that name."""
        target, gone = self._old.of(node).target, self._old.operators.keys() - self._matching.taken
        former = {**self._old.retired, **targets(self._old, gone)}
        same = [name for name, place in former.items() if place == target and node.format not in PASSING]
        if former.get(node.name, target) != target or (same and node.name not in same):
            who = _shown(node.name if node.name in former else same[0])
            what = f"{_shown(node.name)} is new, and {who}, which is gone, still owns its target or name"
            hint = "Keep the name and the target of an existing pump; give a new pump others."
            raise refuse("R401", f"the checkpoint belongs to another query: {what}", hint)

    def _check_topic(self, node: Sink) -> None:
        """Check a topic (R446): its pumps share one order and one numbering, so no pump can come or go."""
        target, former = self._old.of(node).target, targets(self._old, self._old.operators)
        same = [_shown(name) for name, place in former.items() if place == target and name != node.name]
        if same:
            what = f"{' and '.join(same)} wrote into the topic of {_shown(node.name)}, which now has other pumps"
            hint = (
                "Run the original pumps; or start with a new --checkpoint and --take-over, which continues after "
                "the numbers and the bound of the topic."
            )
            raise refuse("R446", what, hint)

    def _refused(self, node: Operator) -> Refused:
        if node.name in self._matching.unfit:
            pump, why = self._matching.unfit[node.name]
            return refuse("R401", f"the target of {pump} has changed: {why}", _OWN_TARGET)
        waiting = self._matching.changes.waiting
        if name := next((part.name for part in walk(node) if part.name in waiting), None):
            return refuse("R401", f"{_shown(node.name)} cannot continue: {waiting[name]}", _LET_OUT)
        changed = [part for part in walk(node) if part.name not in self._same]
        return _refused(self._old, self._program, changed, self._kept())

    @property
    def _same(self) -> set[str]:
        """Return the operators that are unchanged."""
        return {name for name in self._matching.continues if name not in self._matching.changes.changed}

    def _kept(self) -> str:
        """Return which pumps could continue with their state, in words; empty for none."""
        sinks = self._program.sinks
        whole = [_shown(sink.name) for sink in sinks if all(part.name in self._same for part in walk(sink))]
        return f" What is kept for {', '.join(whole)} fits it as it is." if whole else ""


def _refused(old: StoredPlan, program: Program, nodes: Iterable[Operator], kept: str = "") -> Refused:
    """Return R401 for operators, inputs first, that do not follow from the old plan; the last of them cannot start."""
    what, new = difference(old, program, list(nodes))
    pumps = _taking_over(old, program)
    hint = (
        "Put it into a separate script with its own --checkpoint, which reads the streams from their start. Or let "
        "this script "
        f"compute the history again: rowtime migrate FILE --checkpoint DIR{pumps}.{kept}"
        if new
        else "Run the original query, or give this one its own --checkpoint and other names for its pumps. "
        f"Or let this script compute the history again: rowtime migrate FILE --checkpoint DIR{pumps}.{kept}"
    )
    return refuse("R401", f"the checkpoint belongs to another query: {what}", hint)


def _taking_over(old: StoredPlan, program: Program) -> str:
    """Return the options with which existing pumps continue."""
    sinks = [sink for sink in program.sinks if sink.name in old.operators and sink.format != "console"]
    return "".join(f" --take-over {_shown(sink.name)}" for sink in sinks)


# -- as text --------------------------------------------------------------------------


def _lines(
    old: StoredPlan, program: Program, matching: _Matching, admission: _Admission, gone: tuple[str, ...]
) -> Iterator[str]:
    before, after = statements_of(old.sql), statements_of(program.written)
    pairs = ((owner_of(was, before), owner_of(now, after)) for now, was in matching.continues.items())
    yield from dict.fromkeys(f"{was} is called {now}" for was, now in pairs if was != now)
    tuned = {_shown(name): words for name, words in matching.changes.tuned.items()}
    yield from (
        f"{name}: {what}" for name, what in (*matching.eased.items(), *matching.retyped.items(), *tuned.items())
    )
    edges = {node.name for edge in program.edges for node in edge.operators}
    others = (node for node in program.operators if node.name in matching.changes.changed and node.name not in edges)
    changed = ((owner_of(node.name, after), node.kind) for node in others)
    running = before.keys() - {*old.stopped}
    yield from dict.fromkeys(f"{owner}: {kind} has changed" for owner, kind in changed if owner in running)
    for sink in program.sinks:
        if sink.name not in matching.continues:
            begins = any(part.name in admission.begins for part in walk(sink))
            what = "is started" if _shown(sink.name) in old.stopped else "is new"
            yield f"{_shown(sink.name)} {what}{', and begins with the rows read from now on' if begins else ''}"
        elif matching.continues[sink.name] in old.paused:
            yield f"{_shown(sink.name)} is started, and continues where it stopped"
    for name in targets(old, gone):
        yield f"{_shown(name)} is {'stopped' if _shown(name) in program.stopped else 'gone'}"


def _shown(sink: str) -> str:
    return sink.removesuffix(".sink").removesuffix(".result")


# Pauses: what becomes of the operators of a pump that is stopped.
#
# An operator that nobody else reads, and whose inputs are paused as well down to the streams, stays as it is: rows,
# clocks, positions. When the pump starts, it continues there, and gives what it would have given without the stop. An
# operator with an input that goes on would miss rows, so it is gone, as if the script had lost the pump.


def paused(plan: StoredPlan, program: Program, taken: Collection[str]) -> dict[str, StoredOperator]:
    """Return the operators of a plan that are paused once a program runs, which continues those ``taken``."""
    others = {*taken, *(node.name for node in program.operators)}
    still: set[str] = set()
    for name, operator in plan.operators.items():  # inputs first
        if name not in others and all(child in still for child in operator.inputs):
            still.add(name)
    left, below = [name for name in plan.of_kind(Sink.kind) if _is_stopped(plan, name, program)], set[str]()
    while left:
        name = left.pop()
        if name not in below:
            below.add(name)
            left += plan.operators[name].inputs
    return {name: operator for name, operator in plan.operators.items() if name in still and name in below}


def _is_stopped(plan: StoredPlan, sink: str, program: Program) -> bool:
    """Return True for the sink of a stopped pump; several pumps into a topic share a sink with its name."""
    if program.sink(sink) is not None:
        return False
    owner, pumps = sink.removesuffix(".sink"), program.catalog.pumps
    into = [pump for pump in pumps.values() if pump.target.text.lower() == owner]
    readers = [pumps[owner]] if owner in pumps else into if plan.operators[sink].fields["format"] == "kafka" else []
    return bool(readers) and not any(pump.started for pump in readers)


# Targets with a changed declaration: which changes fit the existing rows, so that a pump can continue.
#
# The gate of a pump and the casts after it judge each row by itself, so a new declaration applies from the next row on.
# Existing rows were written under the old one. NOT NULL and CHECK may come and go, and a text may become longer. A
# number may become wider if a target stores no types: in lines of text, records, tables of a database that has the
# wider type, and functions. Parquet files store their types, and a reader of two types would fail; the types of a
# stream log are in the scripts of its readers.

_WHOLE: Final = re.compile("TINYINT|SMALLINT|INT|INTEGER|BIGINT", re.IGNORECASE)
_FLOATING: Final = re.compile("FLOAT|REAL|DOUBLE", re.IGNORECASE)
_TEXT: Final = re.compile(r"VARCHAR\s*\(.*\)|STRING", re.IGNORECASE)
_DECIMAL: Final = re.compile(r"(?:DECIMAL|NUMERIC)\s*\(\s*\d+\s*(?:,\s*(\d+)\s*)?\)", re.IGNORECASE)


def declared(sql: str) -> dict[str, StreamDef]:
    """Return the streams that an earlier script defines."""
    streams: dict[str, StreamDef] = {}
    for statement in parsed(sql):
        if isinstance(statement, CreateStream) and statement.columns:
            stream = stream_of(statement)
            streams[stream.name] = stream
    return streams


def unfit(before: StreamDef, after: StreamDef) -> str:
    """Return why the rows of a target do not fit its new declaration; empty if they do."""
    names = [[name for name, _ in stream.columns] for stream in (before, after)]
    if names[0] != names[1]:
        return f"{after.name} had the columns {', '.join(names[0])}, and has {', '.join(names[1])}"
    if before.orders or after.orders:
        return f"{after.name} has a declared order, which is checked over all rows"
    for (name, was), (_, now) in zip(before.columns, after.columns, strict=True):
        if not same_type(was, now) and not _bears(was, now, after.format):
            return f"{after.name}.{name} was {was}, is {now}, and the rows that are there keep what they are"
    return ""


def changes(before: StreamDef, after: StreamDef) -> Iterator[str]:
    """Yield the differences, as text."""
    for (name, was), (_, now) in zip(before.columns, after.columns, strict=True):
        if not same_type(was, now):
            yield f"{name} {was} is {now}"
    for name, _ in after.columns:
        if (name in before.required) != (name in after.required):
            yield f"{name} is {'NOT NULL' if name in after.required else 'no longer NOT NULL'}"
    yield from (f"CHECK ({check}) is new" for check in after.checks if check not in before.checks)
    yield from (f"CHECK ({check}) is gone" for check in before.checks if check not in after.checks)


def _bears(was: str, now: str, format_: str) -> bool:
    if format_ == "log":
        return False  # other scripts read it, and have its types
    if _TEXT.fullmatch(was) and _TEXT.fullmatch(now):
        return always_fits(was, now)
    if format_ == "parquet":
        return False
    whole, floating = ((kind.fullmatch(was) and kind.fullmatch(now)) for kind in (_WHOLE, _FLOATING))
    if floating:
        return now.upper() == "DOUBLE"
    scales = [match[1] or "0" for text in (was, now) if (match := _DECIMAL.fullmatch(text))]
    return bool(whole or (len(scales) == 2 and scales[0] == scales[1])) and always_fits(was, now)  # noqa: PLR2004


def below(operators: Mapping[str, StoredOperator], sink: str, bottom: str) -> list[str] | None:
    """Return the operators of a plan between a sink and the query, from above; ``None`` if its query differs."""
    names: list[str] = []
    name = _input_of(operators, sink)
    while name is not None and name != bottom:
        names.append(name)
        name = _input_of(operators, name)
    return None if name is None else names


def _input_of(operators: Mapping[str, StoredOperator], name: str) -> str | None:
    inputs = operators[name].inputs if name in operators else ()
    return inputs[0] if len(inputs) == 1 else None
