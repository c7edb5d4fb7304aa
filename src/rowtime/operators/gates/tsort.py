"""T-sort: promotes an event time to rowtime, within a tolerance for disorder.

Semantics 5 and 7.1. A row is refused as ``LATE`` if and only if its time + w is below the mark, the greatest time of
the earlier rows of its writer. Accepted rows are not sorted here: the bound mark - w is passed on, and a consumer that
needs order gets a `Merge` above. Promotion without a sort (``expr AS ROWTIME``) is a T-sort within 0. A bound that is
set manually is about the time itself: it is a floor of each present writer, besides its mark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from sqlglot import exp

from rowtime.core.clock import NOBODY, Clocks, least, strongest
from rowtime.core.columns import JUDGED, PASSED_ROWTIME, POSITION, PROMOTED_TIME, ROWTIME, WRITER
from rowtime.core.errors import refuse
from rowtime.core.fields import LATER, Micros
from rowtime.core.time import BEGINNING, END, shift
from rowtime.frames.frame import Frame
from rowtime.kernels.blame import Raise
from rowtime.operators.contract import (
    Column,
    Delta,
    Derivation,
    Distribution,
    Origin,
    Shape,
    Tick,
    Unary,
    micros,
    quoted,
)
from rowtime.operators.contract.gates import Gate, beyond_arrival
from rowtime.operators.contract.lateness import added
from rowtime.operators.contract.requirement import WRITERS
from rowtime.operators.contract.state import StateNote
from rowtime.operators.rows.select import Select
from rowtime.operators.streams.quarantine import Quarantine, Waiting, undecided
from rowtime.sql.generate import to_spark


@dataclass(frozen=True)
class SortMarks(Waiting):
    """The state of the new time; instants in µs UTC.

    ``marks``: by writer, until it leaves, the greatest time. ``floors``: by writer, until it leaves, the time below
    which its rows are late: it came later, or a bound was set. ``raised``: by writer, until it leaves, the row that
    raised its mark last by far (`Raise`). ``followed``: by bound of the input, the new time there, set anew in each
    tick; ``None`` if it depends on no other. ``shown``: the greatest promise of any writer. ``clock``: the least
    promise, at which a new writer starts. ``known``: the writers of the last tick, and what each had promised (older
    versions: a list of the writers); ``None`` before the first. ``timed``: Spark has confirmed that the time is a
    timestamp. ``early``, ``ahead`` (µs): the distances of the guard, for the re-admission of rows; ``None`` without it.
    ``set``: bounds that were set manually, until the next tick takes them. ``lateness``: how far the late rows were
    below their marks (`Lateness`), as long as the query lives.
    """

    marks: Mapping[str, int] = field(default_factory=dict)
    floors: Mapping[str, int] = field(default_factory=dict)
    raised: Mapping[str, Sequence[int]] = field(default_factory=dict)
    followed: Mapping[str, int] | None = None
    shown: int = BEGINNING
    clock: int = BEGINNING
    known: Mapping[str, int] | Sequence[str] | None = None
    timed: bool = False
    early: int | None = None
    ahead: int | None = None
    set: Sequence[int] = field(default_factory=list)
    lateness: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TSort(Unary):
    """``ORDER BY time WITHIN within`` with ``time AS ROWTIME``; ``within`` in µs.

    ``keys`` are hidden columns ``__k0``, … that order equal times, ``directions`` theirs; with them a row is released
    only when its time is strictly below the bound. ``by_group``: a row is late only once its whole group is (GROUP BY …
    WITHIN), so it may be below the bound. ``early`` (µs): a row further above the mark is EARLY, and does not move it;
    unless ``resync`` rows after it are near it. ``ahead`` (µs): so is one that is at least this far above its arrival
    time, whatever the mark (semantics 7.3). ``follows``: the time if it is promoted unsorted and is an ascending
    function of the old rowtime, so that it has a value at the old bound too. ``before``: the old rowtime is kept beside
    the new one.
    """

    within: Micros
    keys: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    sorts: bool = True
    by_group: bool = False
    early: Micros | None = None
    resync: int = 0
    follows: exp.Expr | None = None
    ahead: Micros | None = None
    before: bool = field(default=False, metadata=LATER)

    control: ClassVar = SortMarks
    kind: ClassVar[str] = "t-sort"
    decides: ClassVar[str] = "SORT"
    finishes_groups: ClassVar = False
    same_below: ClassVar = (WRITER, POSITION)
    needs: ClassVar = (WRITERS,)  # the arrival order of each writer decides who is late
    promotes: ClassVar[bool] = True
    has_own_time: ClassVar[bool] = True
    is_gate: ClassVar[bool] = True
    passes_all: ClassVar[bool] = True
    keeps_rows_alone: ClassVar[bool] = True
    compares: ClassVar = ("follows",)
    promise: ClassVar[str] = (
        "each writer's mark minus the tolerance; an expression that ascends with the rowtime also promises its value "
        "at the bound"
    )
    reason: ClassVar[str] = (
        "a later row of a writer is accepted only at or above its mark minus the tolerance; if the new rowtime "
        "does not ascend with the old one, old bounds say nothing about it, except that the input has ended"
    )

    def keeps(self) -> tuple[StateNote, ...]:
        """Return a mark per writer, and the rows that wait for later rows to decide about them."""
        mark = StateNote("one mark per writer", "the writer leaves", "writers", fields=("marks",))
        columns = sorted({*self.input.readable(), *self.input.emits().internals})
        return (mark, undecided(self.resync, columns)) if self.resync else (mark,)

    def emits(self) -> Shape:
        """Return the input's columns under a new rowtime; rows may be ahead of the bound."""
        keys = (f"{key} {way}" for key, way in zip(self.keys, self.directions, strict=True))
        below = self.input.emits()
        # Its rows leave like a merge's, so a later gate judges them in their new order. Facts about the columns' order
        # were about the old one.
        columns = tuple(Column(column.name, column.type) for column in below.columns)
        extra = (*self.keys, *((PASSED_ROWTIME,) if self.before else ()))
        return replace(
            below, columns=columns, order=(ROWTIME, *keys, WRITER, POSITION), extra=extra,
            released=False, unmerged=True, stamped=False, event=None,
        )  # fmt: skip

    def promises(self, clocks: Sequence[Clocks], control: SortMarks) -> Clocks:
        """Return each writer's mark minus the tolerance, its floor or the time at its bound; the end if it has ended.

        Without any present writer, the greatest of these that any writer had shown (semantics 2.6).
        """
        marks, floors, followed = control.marks, control.floors, control.followed or {}

        def shown(writer: str) -> int:
            if writer == NOBODY:
                return control.shown
            return max(shift(marks.get(writer, BEGINNING), -self.within), floors.get(writer, BEGINNING))

        return {
            writer: END if bound >= END else max(shown(writer), followed.get(str(bound), BEGINNING))
            for writer, bound in clocks[0].items()
        }

    def may_change(self) -> Mapping[str, str]:
        """Return its tolerances; with RESYNC, held rows are judged later, by the settings when they came."""
        guard = {"early": "EARLY BEYOND", "ahead": "EARLY BEYOND … AFTER ARRIVAL"}
        return {} if self.resync else {"within": "WITHIN", **guard}

    def kept_promises(self, control: Mapping[str, Any], clocks: Clocks) -> Mapping[str, Any]:
        """Return the scalars for another tolerance: a row that the old one excluded is late under a wider one too."""
        promised = {writer: at for writer, at in clocks.items() if at < END}
        return {"floors": strongest(control.get("floors", {}), promised)}

    def checks_pump(self, pump: str) -> bool:
        """Return True for the T-sort at the top of the pump's query."""
        return self.name == pump

    def made_from(self, n: int, column: str) -> Derivation | None:
        """Return the promoted time for its rowtime."""
        promoted = column == ROWTIME and PROMOTED_TIME in self.input.readable()
        return super().made_from(n, PROMOTED_TIME if promoted else column)

    def origin(self, column: str) -> Origin | None:
        """Return the input's column; the column that becomes the rowtime is the rowtime."""
        if not isinstance(self.input, Select):
            return None
        time = next((item.expression for item in self.input.hidden if item.column.name == PROMOTED_TIME), None)
        return Origin(ROWTIME) if time is not None and time == self.input.value_of(column) else None

    def distribution(self) -> Distribution:
        """Return any task, unless its guard decides about later rows."""
        guarded = self.early is not None or self.ahead is not None or self.resync
        return Distribution.SINGLE if guarded else Distribution.ANY

    def step(self, tick: Tick, deltas: Sequence[Delta]) -> Delta:
        """Judge the new rows by the marks, and promote the accepted ones."""
        delta = deltas[0]
        tick.remember(self, early=self.early, ahead=self.ahead)
        if self.follows is not None:
            bounds = {*delta.clocks.values(), *delta.left.values()}
            tick.remember(self, followed={str(at): self._time_at(tick, at) for at in bounds})
        clocks = {w: at for w, at in {**delta.left, **delta.clocks}.items() if w != NOBODY}
        self._set(tick, clocks)
        self._welcome(tick, clocks)
        present = [writer for writer, bound in delta.clocks.items() if bound < END]
        quarantine = Quarantine.of(self, tick, tick.control(self)) if self.resync else None
        if delta.rows is None and (quarantine is None or not quarantine.decided(present)):
            return Delta(None, self._settled(tick, delta, clocks))
        rows = delta.rows if quarantine is None else quarantine.before(delta.rows)
        assert rows is not None
        self._refuse_untimed(tick, rows)
        verdict = tick.judge(self, rows, self._gate(tick.control(self), present))
        raised = {writer: list(raise_of) for writer, raise_of in verdict.raised.items()}
        lateness = added(tick.control(self).lateness, verdict.lateness)
        tick.remember(self, marks=dict(verdict.marks), raised=raised, lateness=lateness)
        if quarantine is not None:
            rows = quarantine.after(rows, verdict)
        rows = tick.account(self, rows, verdict, PROMOTED_TIME)
        shape, promoted = self.emits(), f"CAST({PROMOTED_TIME} AS TIMESTAMP) AS {ROWTIME}"
        internals = (name for name in shape.internals if name != ROWTIME)
        rows = rows.selectExpr(*map(quoted, shape.names), promoted, *internals)
        return Delta(rows, self._settled(tick, delta, clocks), verdict.lowest, verdict.highest)

    def _settled(self, tick: Tick, delta: Delta, every: Clocks) -> Clocks:
        """Return the promises after the tick; those of writers that leave stay certain (semantics 2.6)."""
        control = tick.control(self)
        promised = self.promises([every], control).values()
        control = tick.remember(self, shown=max([control.shown, *promised]))
        clocks = self.promises([delta.clocks], control)
        now = least(clocks.values())
        clocks_of = {writer: clocks[writer] for writer in sorted(clocks) if writer != NOBODY}
        tick.remember(self, clock=max(now, control.clock) if now < END else control.clock, known=clocks_of)
        return clocks

    def _refuse_untimed(self, tick: Tick, rows: Frame) -> None:
        """Refuse (R188) a time that is not a timestamp; for some expressions only Spark knows, and is asked once."""
        if tick.control(self).timed:
            return
        kind = rows.schema[PROMOTED_TIME].dataType.typeName()
        if kind not in ("timestamp", "timestamp_ntz", "timestamp_ltz", "void"):
            what = f"{self.name}: only a timestamp can be ROWTIME, and the promoted expression has type {kind.upper()}"
            raise refuse("R188", what, "Convert it to a timestamp: CAST(… AS TIMESTAMP), timestamp_millis(…).")
        tick.remember(self, timed=True)

    def _time_at(self, tick: Tick, bound: int) -> int:
        if not BEGINNING < bound < END:
            return bound
        assert self.follows is not None
        # Our own name and number, and an expression that was parsed and bound.
        time = f"unix_micros(CAST({to_spark(self.follows)} AS TIMESTAMP))"
        return tick.scalar(f"SELECT {time} FROM (SELECT {micros(bound)} AS {ROWTIME})")  # noqa: S608

    def _gate(self, control: SortMarks, present: Sequence[str]) -> Gate:
        return Gate(
            PROMOTED_TIME,
            self.within,
            "LATE",
            control.marks,
            floors=control.floors,
            far=beyond_arrival(PROMOTED_TIME, self.ahead),
            judged=JUDGED if self.by_group else None,
            batched=self.input.emits().batched,
            early=self.early,
            resync=self.resync,
            present=present,
            raised={writer: Raise(*stored) for writer, stored in control.raised.items()},
        )

    def _set(self, tick: Tick, clocks: Clocks) -> None:
        """Apply manually set bounds of the time, after everything that earlier ticks have read (semantics 5)."""
        control = tick.control(self)
        if control.set:
            given = max(control.set)
            floors = strongest(control.floors, dict.fromkeys(clocks, given))
            tick.remember(self, set=[], floors=floors, clock=max(given, control.clock), shown=max(given, control.shown))

    def _welcome(self, tick: Tick, clocks: Clocks) -> None:
        # Semantics 2.6: a writer that comes or comes back starts at the stream's clock, so that the clock never goes
        # back; its rows below it are late. It comes before the items of other writers in this tick, as in the stream:
        # these may be in this tick or in the next one.
        control = tick.control(self)
        clocks_known, floors = control.known, {**control.floors}
        if not isinstance(clocks_known, Mapping):  # before the first tick, and after one of an older version
            clocks_known = dict.fromkeys(clocks if clocks_known is None else clocks_known, control.clock)
        now = max(control.clock, least(at for writer, at in clocks_known.items() if writer in clocks))
        for writer in clocks:
            if writer not in clocks_known:
                floors[writer] = max(now, floors.get(writer, BEGINNING))
        tick.remember(self, floors=floors, clock=now if now < END else control.clock)
