"""One tick of MATCH_RECOGNIZE: arranges rows by partition, finds matches, and reads their output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.core.columns import BROKEN, KEY_HASH, MATCH_AT, MATCH_ROW, POSITION, ROWTIME, WRITER
from rowtime.core.errors import Failure, Problem, RowtimeError, headline
from rowtime.core.time import to_text
from rowtime.core.worker_errors import raised_by_function
from rowtime.frames.queries import Uncomputed
from rowtime.kernels.exact import Overflow
from rowtime.kernels.frames import Flags, Frames, Ints
from rowtime.kernels.matching.automaton import Automaton
from rowtime.kernels.matching.matcher import Matches, TooManyPaths, matches
from rowtime.kernels.matching.paths import MOST_PATHS
from rowtime.kernels.matching.rows import NOTHING
from rowtime.kernels.matching.running import whole_array
from rowtime.kernels.windowed import whole
from rowtime.operators.contract import Tick, quoted
from rowtime.operators.patterns.conditions import COUNT, Built, Reason, Tester, Values
from rowtime.operators.patterns.partitions import MATCHED_TO, MATCHES, START_FROM, Laid, PartitionRows, laid_out
from rowtime.operators.patterns.remembered import Memory, Stand
from rowtime.operators.patterns.slots import CLASSIFIER, FIRST, TAKEN, Fold, MatchFunction, Pick, Slot
from rowtime.operators.rows.exact_sums import average
from rowtime.sql.generate import to_rowtime, to_spark
from rowtime.sql.nodes import ONE_ROW, SHOW_EMPTY, WITH_UNMATCHED

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame
    from rowtime.operators.patterns.match import Match


@dataclass
class MatchTick:
    """The state of a tick of ``node``."""

    tick: Tick
    node: Match
    memory: Memory
    tester: Tester
    tables: list[pa.Table] = field(default_factory=list)
    refused: list[pa.Table] = field(default_factory=list)

    def at(self, fresh: pa.Table | None, clock: int) -> None:
        """Process new rows at a bound; without rows, only what the bound decides."""
        control = self.tick.control(self.node)
        before, clock = control.bound, max(control.bound, clock)
        hashes = self.memory.due(before, clock)
        if fresh is not None:
            hashes = np.union1d(hashes, np.asarray(fresh[KEY_HASH]))
        if not len(hashes):
            return
        kept = self.memory.kept(hashes, before)
        if kept is None and fresh is None:
            return
        like = fresh if kept is None else kept
        assert like is not None
        heads = self.memory.known(hashes, before, like)
        kept, fresh = (like.slice(0, 0) if table is None else table for table in (kept, fresh))
        partitions = PartitionRows(self.node.names, kept, fresh, heads)
        laid = laid_out(partitions, clock, self.node.expires, self.node.ahead)
        if laid is None:
            return
        turn = control.turn + 1
        self._look(laid, clock, turn)
        self.tick.remember(self.node, turn=turn, bound=clock)

    def _look(self, laid: Laid, clock: int, turn: int) -> None:
        node, rows = self.node, laid.rows
        columns = {text: whole(laid.table[name]) for text, name in node.arguments.items()}
        values = Values(rows, columns, self.tick.control(node).types)
        built = Built(node.conditions, node.numbers, node.machine.variables, values, self.tester)
        begin = laid.upto(laid.of_heads(START_FROM, np.full(len(rows.begins), -1)))
        matches = self._matches(laid, built, begin)
        partition = rows.partition[matches.starts]
        numbers = laid.of_heads(MATCHES, np.zeros(len(rows.begins), np.int64))
        first = np.searchsorted(partition, partition)
        ordinals = numbers[partition] + np.arange(len(partition)) - first + 1
        self._give_up(laid, Reader(node.machine, node.numbers, matches, NO_ROWS, values, ordinals), built.reasons)
        covered = self._covered(laid, matches)
        out = going_out(node.machine, matches, node.rows, self._unmatched(laid, matches, begin))
        if len(out.row):
            self._read(laid, Reader(node.machine, node.numbers, matches, out, values, ordinals))
        counts = numbers + np.bincount(partition, minlength=len(rows.begins))
        self.memory.keep(laid, Stand(matches, counts, covered), clock, turn)

    def _matches(self, laid: Laid, built: Built, begin: Ints) -> Matches:
        """Return the matches; if a condition fails for a start that may not be reached, all are tried in order."""
        node = self.node
        try:
            try:
                return matches(node.clause, laid.rows, built.for_matcher, begin)
            except (RowtimeError, TooManyPaths, Overflow):
                raise
            except Exception:  # noqa: BLE001 - of any expression; the start that is reached reports it
                return self._in_turn(laid, built, begin)
        except TooManyPaths as many:
            at = to_text(int(laid.rows.times[many.row]))
            what = f"{node.name}: PATTERN ({node.pattern}) has more than {MOST_PATHS:,} open paths from the row at {at}"
            hint = "Make the conditions in DEFINE exclude each other, or give quantifiers an upper limit."
            raise Failure(Problem("R178", what, hint=hint)) from many
        except Overflow as wrong:
            raise self._beyond(wrong) from wrong

    def _in_turn(self, laid: Laid, built: Built, begin: Ints) -> Matches:
        try:
            return matches(replace(self.node.clause, in_turn=True), laid.rows, built.for_matcher, begin)
        except (RowtimeError, TooManyPaths, Overflow):
            raise
        except Exception as wrong:
            raise self._uncomputed(wrong) from wrong

    def _give_up(self, laid: Laid, reader: Reader, reasons: Sequence[Reason]) -> None:
        """Refuse, for each start that is given up, the row for which a condition cannot be computed."""
        starts, rows, numbers = reader.matches.failed
        if not len(starts):
            return
        order = np.argsort(starts)
        if not self.tick.trying or self.tick.stops:
            reason = reasons[int(numbers[order[0]]) - 1]
            raise self._uncomputed(reason.error, reason.text) from reason.error
        out = Out(rows[order], np.full(len(rows), UNMATCHED), np.zeros(len(rows), np.int64))
        self._refuse(laid, replace(reader, out=out), [reasons[number - 1].text for number in numbers[order].tolist()])

    def _uncomputed(self, wrong: BaseException, text: str = "a value") -> Failure:
        """Return the problem of a condition; ``text``: it, as a user writes it, if Spark has not reported a reason."""
        if isinstance(wrong, Overflow):
            return self._beyond(wrong)
        reason = text if isinstance(wrong, Uncomputed) else raised_by_function(str(wrong)) or headline(wrong)
        what = f"{self.node.name}: a condition in DEFINE cannot be computed: {reason}"
        hint = "Make it return NULL instead, with NULLIF, TRY_CAST or try_divide."
        return Failure(Problem("R179", what, hint=hint))

    def _beyond(self, wrong: Overflow) -> Failure:
        hint = "Cast the argument to a wider type, for example DECIMAL(38, 0)."
        return Failure(Problem("R507", f"{self.node.name}: {wrong}", hint=hint))

    def _covered(self, laid: Laid, matches: Matches) -> Ints:
        """Return for each partition the position up to which (exclusive) its matches reach."""
        reached = laid.of_heads(MATCHED_TO, np.full(len(laid.rows.begins), -1)).copy()
        lengths = np.maximum(np.diff(matches.offset), 1)
        last = matches.starts + lengths - 1
        np.maximum.at(reached, laid.rows.partition[matches.starts], laid.positions[last] + 1)
        return reached

    def _unmatched(self, laid: Laid, matches: Matches, begin: Ints) -> Ints:
        """Return the rows that are decided now and have no match."""
        if self.node.rows != WITH_UNMATCHED:
            return np.zeros(0, np.int64)
        rows, every = laid.rows, np.arange(len(laid.rows.times))
        decided = (every >= begin[rows.partition]) & (every < matches.next[rows.partition])
        before = laid.of_heads(MATCHED_TO, np.full(len(rows.begins), -1))
        taken = np.zeros(len(every) + 1, np.int64)
        lengths = np.maximum(np.diff(matches.offset), 1)
        np.add.at(taken, matches.starts, 1)
        np.add.at(taken, matches.starts + lengths, -1)
        matched = (np.cumsum(taken[:-1]) > 0) | (laid.positions < before[rows.partition])
        return np.flatnonzero(decided & ~matched)

    # -- rows -------------------------------------------------------------------------------

    def _read(self, laid: Laid, reader: Reader) -> None:
        """Read the measures; in a tick that is ``trying``, output rows with a sum that overflows are refused."""
        node = self.node
        try:
            columns = reader.columns(node.slots)
        except Overflow as wrong:
            if not self.tick.trying or self.tick.stops:
                raise self._beyond(wrong) from wrong
            call = next(slot for slot in node.slots if slot.column.name == wrong.name)
            assert isinstance(call, Fold)
            gone = reader.among(wrong.beyond)
            self._refuse(laid, gone, [to_rowtime(call.typed)] * len(gone.out.row))
            self._read(laid, reader.among(~wrong.beyond))
        else:
            self.tables.append(self._placed(laid, reader, columns))

    def _refuse(self, laid: Laid, reader: Reader, broken: Sequence[str]) -> None:
        """Refuse rows for what cannot be computed: ``broken``, one each."""
        node = self.node
        shown = {name: name for name in (*node.passed, ROWTIME, WRITER, POSITION)}
        shown = {key.expression.name: key.column.name for key in node.keys} | shown
        gone = self._placed(laid, reader, {}).select([*shown.values()]).rename_columns([*shown])
        self.refused.append(gone.append_column(BROKEN, pa.array(broken, pa.string())))

    def _placed(self, laid: Laid, reader: Reader, columns: Mapping[str, pa.Array]) -> pa.Table:
        """Return the output rows with their measures: ``columns``."""
        node, out, taken = self.node, reader.out, laid.table.take(pa.array(reader.out.row))
        position = laid.positions[out.row]
        starts = np.append(reader.matches.starts, 0)
        return pa.table(
            {
                **{name: taken[name] for name in (*node.names, *node.passed)},
                **{other: taken[name] for name, other in zip(node.names, node.sorting, strict=True)},
                **columns,
                ROWTIME: pa.array(laid.rows.times[out.row]).cast(pa.timestamp("us", "UTC")),
                WRITER: pa.repeat("", len(out.row)),
                POSITION: pa.array(position),
                MATCH_ROW: pa.array(position),
                MATCH_AT: pa.array(np.where(out.match >= 0, laid.positions[starts[out.match]], position)),
            }
        )

    def rows(self) -> Frame | None:
        """Return the output rows, with Spark's types; refuse those that cannot be computed."""
        if self.refused:
            gone = pa.concat_tables(self.refused)
            self.tick.refuse_computed(self.node, self.tick.frame(self.node, gone), BROKEN)
        if not self.tables:
            return None
        node, types, table = self.node, self.tick.control(self.node).types, pa.concat_tables(self.tables)
        shape, named = node.emits(), []
        for slot in node.slots:
            name = slot.column.name
            value, kind = quoted(name), types[name]
            if f"{name}{COUNT}" in table.column_names:
                scale = table[name].type.scale
                value = average(value, quoted(f"{name}{COUNT}"), f"decimal(38,{scale})", kind)
            named.append(f"CAST({value} AS {kind}) AS {quoted(name)}")
        rows = self.tick.frame(node, table)
        return rows.selectExpr(*map(quoted, (*node.names, *node.passed)), *named, *shape.internals)


UNMATCHED = -1
MOST_SHOWN = 50  # rows of a match that a trace lists


@dataclass(frozen=True)
class Out:
    """The output: the ``row``, its ``match`` (`UNMATCHED` for none), and the number of the match's rows up to it."""

    row: Ints
    match: Ints
    upto: Ints


NO_ROWS = Out(*(np.zeros(0, np.int64) for _ in range(3)))


def going_out(machine: Automaton, matches: Matches, mode: str, unmatched: Ints) -> Out:
    """Return the output rows, by match, then those without a match."""
    lengths = np.diff(matches.offset)
    if mode == ONE_ROW:
        return Out(matches.starts + np.maximum(lengths - 1, 0), np.arange(len(lengths)), lengths)
    match = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(match)) - matches.offset[match]
    shown = ~machine.left_out[matches.states]
    empty = np.flatnonzero(lengths == 0) if mode in (SHOW_EMPTY, WITH_UNMATCHED) else np.zeros(0, np.int64)
    match, place = np.concatenate((match[shown], empty)), np.concatenate((place[shown], np.full(len(empty), -1)))
    order = np.argsort(match, kind="stable")
    match, place = match[order], place[order]
    row = matches.starts[match] + np.maximum(place, 0)
    none = np.full(len(unmatched), UNMATCHED)
    return Out(np.concatenate((row, unmatched)), np.concatenate((match, none)), np.concatenate((place + 1, none + 1)))


@dataclass(frozen=True)
class Reader:
    """Reads the slots of output rows; ``ordinals``: the number of each match in its partition."""

    machine: Automaton
    numbers: Mapping[str, int]
    matches: Matches
    out: Out
    values: Values
    ordinals: Ints

    @cached_property
    def _in_match(self) -> Flags:
        return np.asarray(self.out.match != UNMATCHED)

    def among(self, which: Flags) -> Reader:
        """Return the reader of some of the output rows."""
        out = self.out
        return replace(self, out=Out(out.row[which], out.match[which], out.upto[which]))

    def columns(self, slots: Sequence[Slot]) -> dict[str, pa.Array]:
        """Return the columns of some slots, by name; an average of decimals has its count in an additional one.

        Raises ``Overflow``: for which output rows the first slot that has one overflows its type.
        """
        columns: dict[str, pa.Array] = {}
        for slot in slots:
            try:
                values = self._slot(slot)
            except Overflow as wrong:
                raise Overflow(str(wrong), wrong.beyond, slot.column.name) from wrong
            columns |= {f"{slot.column.name}{more}": column for more, column in values.items()}
        return columns

    def _slot(self, slot: Slot) -> Mapping[str, pa.Array]:
        if isinstance(slot, Pick):
            return {"": self.values.at(to_spark(slot.value), self._row(slot), slot.move)}
        if isinstance(slot, Fold):
            return self._fold(slot)
        if slot.what == CLASSIFIER:
            return {"": self._classifier(slot)}
        if slot.what == TAKEN:
            return {"": pa.array(map(self._taken, range(len(self.out.row))), pa.string())}
        return {
            "": pa.array(self.ordinals[self.out.match] if len(self.ordinals) else self.out.match, mask=~self._in_match)
        }

    def _frames(self, variables: Sequence[str], *, final: bool) -> tuple[Ints, Frames]:
        """Return the places of the rows of some variables in all matches, and those for each output row."""
        mine = np.isin(self.machine.variable[self.matches.states], [self.numbers[name] for name in variables])
        hits = np.flatnonzero(mine)
        match = np.where(self._in_match, self.out.match, len(self.matches.starts))
        offset = np.append(self.matches.offset, self.matches.offset[-1])
        upto = (
            np.append(self.matches.offset[1:], self.matches.offset[-1])[match]
            if final
            else offset[match] + self.out.upto
        )
        return hits, Frames(np.searchsorted(hits, offset[match]), np.searchsorted(hits, upto))

    def _picked(self, pick: Pick | MatchFunction) -> Ints:
        """Return the place that a pick means among the rows of all matches; `NOTHING` for none."""
        hits, frames = self._frames(pick.variables, final=pick.final)
        which, offset = pick.place
        at = frames.lo + offset if which == FIRST else frames.hi - 1 - offset
        exists = (at >= frames.lo) & (at < frames.hi)
        return np.where(exists, hits[np.where(exists, at, 0)], NOTHING) if len(hits) else np.full(len(at), NOTHING)

    def _row(self, pick: Pick) -> Ints:
        place = self._picked(pick)
        match = np.where(self._in_match, self.out.match, 0)
        if not len(self.matches.starts):
            return place
        return np.where(place == NOTHING, NOTHING, self.matches.starts[match] + place - self.matches.offset[match])

    def _classifier(self, function: MatchFunction) -> pa.Array:
        place = self._picked(function)
        exists = place != NOTHING
        states = self.matches.states[np.where(exists, place, 0)] if exists.any() else np.zeros(len(place), np.int64)
        names = pa.array(self.machine.variables, pa.string())
        return names.take(pa.array(self.machine.variable[states], mask=~exists))

    def _taken(self, number: int) -> str:
        """Return the variables and times of the rows of a match, as text."""
        match = self.out.match[number]
        begin, end = self.matches.offset[match : match + 2]
        last = min(end, begin + MOST_SHOWN)
        rows = self.matches.starts[match] + np.arange(last - begin)
        variables = self.machine.variable[self.matches.states[begin:last]]
        shown = [f"{self.machine.variables[name]} {to_text(int(at))}" for name, at in
                 zip(variables, self.values.rows.times[rows], strict=True)]  # fmt: skip
        return ", ".join([*shown, *([f"and {end - last} more"] if last < end else [])])

    def _fold(self, fold: Fold) -> dict[str, pa.Array]:
        hits, frames = self._frames(fold.variables, final=fold.final)
        match = np.searchsorted(self.matches.offset, hits, "right") - 1
        rows = self.matches.starts[match] + hits - self.matches.offset[match] if len(hits) else hits
        argument = self.values.columns[to_spark(fold.value)].take(pa.array(rows))
        parts = fold.function.seeds(argument, self.values.rows.times[rows])
        columns = fold.function.value(fold.function.fold(parts, frames))
        matched = pa.array(self._in_match)
        return {
            name: pc.if_else(matched, whole_array(column), pa.scalar(None, column.type))
            for name, column in columns.items()
        }
