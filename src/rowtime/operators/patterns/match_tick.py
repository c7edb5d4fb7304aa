"""One tick of MATCH_RECOGNIZE: arranges rows by partition, finds matches, and reads their output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowtime.core.columns import BROKEN, KEY_HASH, MATCH_AT, MATCH_ROW, POSITION, ROWTIME, WRITER
from rowtime.core.errors import Failure, Problem, RowtimeError, headline
from rowtime.core.time import to_text
from rowtime.core.worker_errors import raised_by_function
from rowtime.frames.queries import Uncomputed
from rowtime.kernels.exact import Overflow
from rowtime.kernels.frames import Ints
from rowtime.kernels.matching.matcher import Matches, TooManyPaths, matches
from rowtime.kernels.matching.paths import MOST_PATHS
from rowtime.kernels.windowed import whole
from rowtime.operators.contract import Tick, quoted
from rowtime.operators.patterns.conditions import COUNT, Built, Reason, Tester, Values
from rowtime.operators.patterns.output_rows import NO_ROWS, UNMATCHED, Out, Reader, going_out
from rowtime.operators.patterns.partitions import MATCHED_TO, MATCHES, START_FROM, Laid, PartitionRows, laid_out
from rowtime.operators.patterns.remembered import Memory, Stand
from rowtime.operators.patterns.slots import Fold
from rowtime.operators.rows.exact_sums import average
from rowtime.sql.generate import to_rowtime
from rowtime.sql.nodes import WITH_UNMATCHED

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
