"""Fires of panes: the results of a group each time that a bound releases some of its rows.

Semantics 8.3. The rows of a group are ordered by the bounds that release them. Each such bound is a fire, with all rows
up to it; so the partial results of a fire are a running total over the group's fires. Many late fires of one pane cost
in proportion to their number. If an aggregate has no partial form, each fire reads its rows again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from rowtime.core.columns import FIRE, FIRE_CHANGE, FIRE_INDEX, LAST_FIRE, NEXT_FIRE, PANE
from rowtime.frames.frame import Frame
from rowtime.operators.rows.collations import collated_of, grouped, least
from rowtime.operators.rows.partials import Accumulators


@dataclass(frozen=True)
class Fires:
    """The fires of groups (a pane and ``keys``); ``accumulators`` of their rows are kept.

    ``types`` are those of the accumulators. ``early``: there are fires before panes are complete. ``changes``: a fire
    retracts the row before it. ``exact``: sums may overflow their types, so nothing is merged before a fire
    (`Accumulators.exact`). The output has `CHANGE`, `INDEX`, `LAST` and the aggregates.
    """

    keys: Sequence[str]
    accumulators: Accumulators
    types: Mapping[str, str]
    early: bool
    changes: bool
    exact: bool = False

    def merged(self, rows: Frame, *, at_ends: bool = False) -> Frame:
        """Return one row for each fire of a group, if partial results are enough.

        ``at_ends``: all rows are released by the end of their pane.
        """
        if not self._splits:
            return rows
        if at_ends:
            return grouped(rows, [*self.keys, PANE], self._merges()).selectExpr("*", f"{PANE} AS {FIRE}")
        return grouped(rows, self._by, self._merges())

    def first(self, rows: Frame, *, merged: bool = False) -> Frame:
        """Return one fire for each group, by the end of its pane. ``merged``: as `merged` returned the rows."""
        if self._splits:
            fires = (rows if merged else self.merged(rows, at_ends=True)).selectExpr(*self._by, *self._finals)
        else:
            fires = self._of_rows(rows, self._by)
        names = self._names_of(fires)
        return fires.selectExpr(
            *self._by, f"1 AS {FIRE_CHANGE}", f"0L AS {FIRE_INDEX}", f"{FIRE} AS {LAST_FIRE}", *names
        )

    def again(self, rows: Frame, before: int, after: int) -> Frame:
        """Return late and early fires by bounds in (``before``, ``after``], over all rows of their groups.

        With early fires, complete ones too: such a fire may have no rows of its own.
        """
        rows = rows.where(f"{FIRE} <= {after}L")
        wanted = f"{FIRE} > {before}L" + ("" if self.early else f" AND {FIRE} > {PANE}")
        fires = self._numbered(rows, after).where(f"{LAST_FIRE} > {before}L OR {NEXT_FIRE} > {before}L")
        fires = fires.selectExpr(*self._place, *self._finals) if self._splits else self._read(rows, fires)
        names = self._names_of(fires)
        fires.share()
        changes = [(LAST_FIRE, 1), *([(NEXT_FIRE, 0)] if self.changes else [])]
        shown = (
            fires.selectExpr(
                *self.keys, PANE, f"{at} AS {FIRE}", f"{kind} AS {FIRE_CHANGE}", FIRE_INDEX, LAST_FIRE, *names
            )
            for at, kind in changes
        )
        return reduce(lambda some, more: some.unionByName(more), shown).where(wanted)

    def _numbered(self, rows: Frame, after: int) -> Frame:
        """Return every fire of each group, its number, the next one, and the partial results up to it."""
        if self.early:
            complete = rows.where(f"{FIRE} < {PANE} AND {PANE} <= {after}L")
            ends = complete.selectExpr(*self.keys, PANE, f"{PANE} AS {FIRE}")
            rows = rows.unionByName(ends, allowMissingColumns=True)
        fires = grouped(rows, self._by, self._merges())
        group = f"PARTITION BY {', '.join([*self.keys, PANE])} ORDER BY {FIRE}"
        number = f"CAST(row_number() OVER ({group}) - 1 AS BIGINT) AS {FIRE_INDEX}"
        upto = f"{FIRE} AS {LAST_FIRE}"
        collated = collated_of(fires, self.keys)
        so_far = f"OVER ({group} ROWS UNBOUNDED PRECEDING)"
        totals = self._merges(f" {so_far}")
        keys = [f"{least(key)} {so_far} AS {key}" if key in collated else key for key in self.keys]
        return fires.selectExpr(*keys, PANE, upto, number, f"lead({FIRE}) OVER ({group}) AS {NEXT_FIRE}", *totals)

    def _read(self, rows: Frame, fires: Frame) -> Frame:
        """Return each fire over all rows of its group up to it."""
        named = [f"{name} AS __f{name}" for name in (*self.keys, PANE)]
        same = [f"{name} <=> __f{name}" for name in (*self.keys, PANE)]
        others = fires.selectExpr(*named, LAST_FIRE, FIRE_INDEX, NEXT_FIRE)
        pairs = rows.joined(others, " AND ".join([*same, f"{FIRE} <= {LAST_FIRE}"]), "inner")
        return self._of_rows(pairs, self._place)

    def _of_rows(self, rows: Frame, by: Sequence[str]) -> Frame:
        if self.exact:
            return self.accumulators.exact(rows, by, [], self.types)
        return self.accumulators.of_rows(rows, by)

    @property
    def _splits(self) -> bool:
        return self.accumulators.splits and not self.exact

    def _merges(self, over: str = "") -> list[str]:
        return self.accumulators.merges(self.types, over) if self._splits else []

    @property
    def _by(self) -> list[str]:
        return [*self.keys, PANE, FIRE]

    @property
    def _place(self) -> list[str]:
        return [*self.keys, PANE, LAST_FIRE, FIRE_INDEX, NEXT_FIRE]

    @property
    def _finals(self) -> list[str]:
        return self.accumulators.finals(self.types)

    def _names_of(self, fires: Frame) -> list[str]:
        """Return the aggregates, and which of them overflow their types."""
        beyond = [flag for flag, _ in self.accumulators.beyond(fires)] if self.exact else []
        return [*(name for name, _ in self.accumulators.aggregates), *beyond]
