"""The steps of a tick: each operator in plan order, over what the operators before it gave."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rowtime.frames.answers import ANSWERS, Part, Wanted
from rowtime.operators.contract import Delta, Operator, quoted
from rowtime.operators.rows.attempt import all_computed
from rowtime.plan.levels import Levels
from rowtime.plan.program import Program
from rowtime.plan.required_columns import columns_of_streams
from rowtime.runtime.adopted_files import adopted_files
from rowtime.runtime.close_look import CloseLook, computed_at_once
from rowtime.runtime.column_types import ColumnTypes
from rowtime.runtime.given_rows import to_watch, uncounted
from rowtime.runtime.tick import RunningTick
from rowtime.runtime.visible_changes import visible_changes

Tap = Callable[[Operator, Delta], None]


def no_tap(_node: Operator, _delta: Delta) -> None:
    """Look at nothing."""


class AllWanted(Exception):
    """What operators of a tick want of Spark; ``rounds``: by operator, how many values it needs one after the other."""

    def __init__(self, wanted: Sequence[Wanted], rounds: Mapping[str, int]) -> None:
        super().__init__("; ".join(map(str, wanted)))
        self.wanted, self.rounds = wanted, rounds

    @property
    def parts(self) -> dict[Part, bool]:
        """Return all expressions, and whether their values are wanted."""
        listed = sorted(((part, one.rows is not None) for one in self.wanted for part in one.parts), key=lambda p: p[1])
        return dict(listed)


@dataclass(frozen=True)
class Steps:
    """The steps of every tick of a program.

    ``adopted``: the columns of sinks that take over an operator's files; ``changing``: operators above which each
    change is needed; ``uncounted``: those whose rows nobody else counts; ``watched``: those that are counted for that
    (`given_rows`); ``read_once``: those of which one operator reads all rows, once; ``at_once``: the columns that are
    computed before an operator above may refuse or drop rows (`computed_at_once`); ``look``: how a tick is examined row
    by row, if rows that fail do not end the run; ``levels``: which of them step in any task; ``columns``: of streams of
    which somebody reads some only.
    """

    operators: Sequence[Operator]
    adopted: Mapping[str, Mapping[str, str]]
    changing: Collection[str]
    uncounted: Sequence[str]
    watched: Mapping[str, bool]
    read_once: Collection[str]
    at_once: Mapping[str, Sequence[str]]
    look: CloseLook | None = None
    levels: Levels = field(default_factory=Levels)
    columns: Mapping[str, Collection[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, program: Program, types: ColumnTypes, takers: Collection[str]) -> Steps:
        """Return the steps of a program; ``takers``: its sinks that may take over files."""
        plan = program.described()
        few = uncounted(plan)
        demands = adopted_files(program, types.of, takers), visible_changes(program)
        at_once = computed_at_once(program.operators)
        look = CloseLook(program, defers=True)
        watched, levels = to_watch(plan, few), Levels.of(program.operators)
        columns = columns_of_streams(program.operators)
        return cls(program.operators, *demands, few, watched, program.read_once, at_once, look, levels, columns)

    def done(
        self,
        running: RunningTick,
        tap: Tap = no_tap,
        look: CloseLook | None = None,
        only: Sequence[Operator] | None = None,
    ) -> dict[str, Delta]:
        """Let the operators step, all or ``only`` these; return what each gives.

        ``tap`` is called with each result, while it can be read; ``look`` examines the tick row by row. Raises
        ``AllWanted`` if operators need values that only Spark computes; those that do not depend on them have stepped.
        """
        deltas: dict[str, Delta] = {}
        answers, wanted, rounds = ANSWERS.get(), list[Wanted](), dict[str, int]()
        for node in self.operators if only is None else only:
            if wanted and any(child.name not in deltas for child in node.inputs):
                continue  # what it is given is not known yet
            if answers is not None:
                answers.steps(node.name, [child.name for child in node.inputs])
            try:
                given = [running.received(child, node, deltas[child.name]) for child in node.inputs]
                delta = running.stepped(node) or (
                    look.step(running, node, given) if look else self._computed(node, node.step(running, given))
                )
                deltas[node.name] = running.given.watched(node, delta, {} if look else self.watched)
            except Wanted as more:
                assert answers is not None
                wanted.append(more)
                rounds[node.name] = answers.depth(node.name) + (more.rows is not None)
                continue
            rows = deltas[node.name].rows
            if rows is not None and node.name not in self.read_once:
                rows.share()
            tap(node, deltas[node.name])
        if wanted:
            raise AllWanted(wanted, rounds)
        return deltas

    def combined(self, running: RunningTick, reader: Operator, delta: Delta) -> Delta:
        """Return what an operator of the next level takes of some rows; raises ``AllWanted``."""
        answers = ANSWERS.get()
        assert answers is not None
        answers.steps(reader.name, [child.name for child in reader.inputs])
        try:
            return reader.combined(running, delta)
        except Wanted as more:
            raise AllWanted([more], {reader.name: answers.depth(reader.name) + (more.rows is not None)}) from None

    def _computed(self, node: Operator, delta: Delta) -> Delta:
        texts = self.at_once.get(node.name)
        if delta.rows is None or not texts:
            return delta
        return replace(delta, rows=all_computed(delta.rows, map(quoted, texts)))

    def counted(self, running: RunningTick, deltas: Mapping[str, Delta]) -> dict[str, int]:
        """Return the numbers of rows that nobody else counts, if known."""
        return running.given.by_operator(deltas, [name for name in self.uncounted if name in deltas])
