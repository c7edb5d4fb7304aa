"""Binds JOIN: two inputs become one operator, with the range of rowtimes in which rows join (semantics 5, 6).

The range comes from windows on the inputs, else from a condition on their rowtimes; without either, rows with equal
rowtimes join. Further inputs join the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from sqlglot import exp

from rowtime.core.columns import PLACES, ROWTIME
from rowtime.core.errors import Problem, Refused
from rowtime.core.time import END
from rowtime.expr.conditions import col, columns_in
from rowtime.expr.many_rows import has_aggregates
from rowtime.operators.joins.join import EVER, Join
from rowtime.operators.joins.of_rows import Side
from rowtime.operators.joins.table_join import TableJoin
from rowtime.operators.streams.table import is_table
from rowtime.operators.streams.table_versions import refreshed, with_versions
from rowtime.plan.bind import rewrites
from rowtime.plan.bind.as_of import AsOf, take_match
from rowtime.plan.bind.correlation import is_derived
from rowtime.plan.bind.join_range import Clause, Range, between, comparisons, missing_limit, unique, windows
from rowtime.plan.bind.join_times import Untimed, compares_windows
from rowtime.plan.bind.rowtime_columns import is_rowtime, over_rowtimes
from rowtime.plan.bind.scope import From, Input, Scope
from rowtime.plan.bind.sources import Binder
from rowtime.plan.bind.values_below import computed_below
from rowtime.plan.file_times import timed_by_files
from rowtime.sql.nodes import CurrentRowTimestamp, IfGiven
from rowtime.sql.places import place_of, refuse_at

_ALONE = {"SEMI": "left_semi", "ANTI": "left_anti"}
_HINTS = {
    "SEMI": "Write JOIN, and select the columns of the left side alone.",
    "ANTI": "Write LEFT JOIN, and keep what found no match: WHERE b.k IS NULL.",
}
_SWAPPED = {
    "left_semi": "Put the stream on the left: a LEFT SEMI JOIN t ON …",
    "left_anti": "Put the stream on the left: a LEFT ANTI JOIN t ON …",
}
_WINDOW = "a OVER (RANGE INTERVAL '1' MINUTE PRECEDING) JOIN b."
_LIMITED = f"Compare the rowtimes in ON, from below and from above, or give an input a window: {_WINDOW}"


class Joins:
    """The JOIN clauses of the SELECT ``query``."""

    def __init__(self, binder: Binder, query: exp.Select, name: str) -> None:
        self.binder, self.query, self.name = binder, query, name
        self.text, self.sources = binder.text, binder.sources
        self._taken: set[str] = set()

    def bind(self, left: From, right: From, node: exp.Join) -> From:
        """Return the join of the input before a JOIN with the one after it."""
        take_match(self.text, node, (left, right))
        tables = [is_table(source.node) for source in (left, right)]
        clause = self._clause(left, right, node, tabled=any(tables))
        on, merged = self._condition(clause)
        if (version := node.this.args.get("version")) is not None:
            as_of = AsOf(self.binder, self.name, clause, unique(f"{clause.inputs[1][0].alias}_rowtime", self._taken))
            if not refreshed(right.node):
                return as_of.bind(on, merged)
            as_of.check_time(version, [one.alias for one in clause.inputs[0] if one.rowtime])
        if any(tables):
            return self._with_table(clause, tables, on, merged)
        distance, stamps = self._range(clause, on)
        return self._built(clause, distance, stamps, merged)

    def _refused(self, code: str, message: str, node: exp.Expr, hint: str = "") -> Refused:
        return refuse_at(self.text, node, code, message, hint)

    # -- the clause and its names -----------------------------------------------------

    def _clause(self, left: From, right: From, node: exp.Join, *, tabled: bool) -> Clause:
        kind, side = (str(node.args.get(part) or "").upper() for part in ("kind", "side"))
        method = str(node.args.get("method") or "").upper()
        if kind in _ALONE and (side == "RIGHT" or node.this.args.get("version")):
            what = "that keeps the right" if side == "RIGHT" else "as of a time"
            raise self._refused("R190", f"a {kind} JOIN {what} is not supported yet", node.this, _HINTS[kind])
        if method not in ("", "NATURAL"):
            raise self._refused("R190", f"{method} JOIN is not supported yet", node.this)
        names = [source.alias.lower() for source in (*left.inputs, *right.inputs)]
        if "" in names or len(set(names)) < len(names):
            what = "an input of a join has no name" if "" in names else f"two inputs have the name {names[-1]}"
            raise self._refused("R151", what, node.this, "Give each input a name of its own with AS.")
        wanted = _wanted(self.query, (*left.inputs, *right.inputs))
        times = (ROWTIME, ROWTIME) if tabled else (PLACES[0][0], PLACES[1][0])
        plain = tabled and (kind in _ALONE or is_derived(node))  # a filter, or beside hidden columns: names stay
        sides = [self._qualified(left, times[0], wanted, plain=plain), self._qualified(right, times[1], wanted)]
        same = {name: time for _, _, rowtimes, _ in sides for name, time in rowtimes.items()}
        outer = (side in ("LEFT", "FULL") or kind in _ALONE, side in ("RIGHT", "FULL"))
        inputs, columns = (sides[0][0], sides[1][0]), (sides[0][1], sides[1][1])
        optional = frozenset().union(*(loose for *_, loose in sides))
        return Clause(node, (left, right), inputs, columns, outer, same, optional, tabled, _ALONE.get(kind, ""))

    def _qualified(
        self, source: From, time: str, wanted: set[str] | None, *, plain: bool = False
    ) -> tuple[tuple[Input, ...], tuple[tuple[str, str], ...], dict[str, str], set[str]]:
        """Return inputs with names unique in a join, the name of each column, and the columns equal to ``time``.

        Last are those that may be NULL instead. ``time`` is the rowtime. ``plain``: columns keep their names.
        """
        alone = len(source.inputs) == 1
        inputs, renamed, same, loose = [], [], {}, set[str]()
        for part in source.inputs:
            columns = []
            for name, column in part.columns:
                if wanted is not None and name.lower() not in wanted:
                    continue
                new = unique(f"{part.alias}_{name}", self._taken) if alone and not plain else column.name
                self._taken.add(new.lower())
                columns.append((name, replace(column, name=new)))
                renamed.append((column.name, new))
                if is_rowtime(value := source.lineage.get(column.name)):
                    same[new] = time
                elif column.name in source.own:
                    same[new] = source.own[column.name]
                loose |= {new} if isinstance(value, IfGiven) or column.name in source.optional else set()
            own = part.rowtime
            inputs.append(replace(part, columns=tuple(columns), rowtime=time if own == ROWTIME else own))
            renamed += [(own, own)] if not alone and own not in (ROWTIME, "") else []
        return tuple(inputs), tuple(renamed), same, loose

    def _condition(self, clause: Clause) -> tuple[exp.Expr | None, dict[str, exp.Expr]]:
        """Return ON, bound, and what the columns of USING mean."""
        names = self._using(clause)
        merged = dict(clause.sources[0].merged)
        tests: list[exp.Expr] = []
        for name in names:
            left, right = self._key(clause, 0, name), self._key(clause, 1, name)
            tests.append(exp.EQ(this=left.copy(), expression=right.copy()))
            kept = {(False, True): right, (True, True): exp.Coalesce(this=left, expressions=[right])}
            merged[name] = kept.get(clause.outer, left)
        on = clause.node.args.get("on")
        if on is not None:
            tests.append(self._bound(clause, on))
        return _all(tests), merged

    def _using(self, clause: Clause) -> list[str]:
        given = [identifier.name for identifier in clause.node.args.get("using") or ()]
        if str(clause.node.args.get("method") or "").upper() != "NATURAL":
            return given
        [right] = clause.inputs[1]
        names = {name.lower() for source in clause.inputs[0] for name, _ in source.columns}
        common = [name for name, _ in right.columns if name.lower() in names]
        if not common:
            hint = "Write JOIN … ON with the condition."
            raise self._refused("R151", "the inputs of NATURAL JOIN have no column in common", clause.node.this, hint)
        return common

    def _key(self, clause: Clause, side: int, name: str) -> exp.Expr:
        """Return the column of USING on one side."""
        merged = clause.sources[0].merged if side == 0 else {}
        scope = Scope(self.text, From(clause.sources[side].node, clause.inputs[side], merged=merged))
        column = col(name)
        column.meta.update(clause.node.this.meta)
        bound = scope.bind(column)
        if scope.problems:
            raise Refused(*scope.problems)
        return bound

    def _bound(self, clause: Clause, on: exp.Expr) -> exp.Expr:
        """Return a condition over the columns of both sides, bound."""
        scope = Scope(self.text, clause.both)
        arrival = on.find(CurrentRowTimestamp)
        if arrival is not None:
            raise self._refused("R112", "CURRENT_ROW_TIMESTAMP is not allowed in ON", arrival, "Select it below.")
        bound = over_rowtimes(clause, scope.bind(on))
        aliases = " or ".join(f"{source.alias}.ROWTIME" for side in clause.inputs for source in side)
        if not clause.tabled and any(column.name == ROWTIME for column in bound.find_all(exp.Column)):
            hint = f"Write {aliases}."
            scope.refuse(
                "R150",
                "ROWTIME would be the rowtime of the joined row, which does not exist before ON has matched the rows",
                on,
                hint,
            )
        if has_aggregates(bound):
            scope.refuse("R116", "ON cannot contain an aggregate", on, "Filter the groups first, in a sub-query.")
        if scope.promises:
            scope.refuse("R102", "ON cannot contain MONOTONIC", on, "Promise it in a sub-query.")
        if scope.problems:
            raise Refused(*scope.problems)
        return bound

    # -- the range --------------------------------------------------------------------

    def _range(self, clause: Clause, on: exp.Expr | None) -> tuple[Range, tuple[int, int]]:
        """Return the range of the rowtimes, and when rows without a match are emitted."""
        left, [right] = clause.timed
        if any(source.lag >= END for source in left):
            hint = "Put the join as of a time into a sub-query or a view, and join that."
            what = "a join of rowtimes after a join as of a time is not supported"
            raise self._refused("R190", what, clause.node, hint)
        above = self._above(clause)
        inner = not any(join.args.get("side") and not is_derived(join) for join in self.query.args["joins"])
        distance = between([*comparisons(on), *(above if inner else ())], left, right)
        if clause.windowed(distance):
            window = windows(left, right)
            stamps = (window.high or 0, -(window.low or 0))
            distance = replace(distance, rest=(*distance.rest, *window.rest))
            distance = distance.at_least(window.low or 0).at_most(window.high or 0)
        else:
            if distance.low is None or distance.high is None:
                distance = self._open(clause, distance, above if not inner else [])
            stamps = (max(0, distance.high or 0), max(0, -(distance.low or 0)))
        if (distance.low or 0) > (distance.high or 0):
            what = "no two rowtimes can satisfy this condition"
            raise self._refused("R152", what, clause.node.this, self._limited(clause, None))
        if any(stamp >= EVER and outer for stamp, outer in zip(stamps, clause.outer, strict=True)):
            what = "only the end of the stream would tell that a row of the outer side has no match"
            raise self._refused("R152", what, clause.node.this, self._limited(clause, distance))
        return distance, stamps

    def _above(self, clause: Clause) -> list[exp.Expr]:
        """Return the parts of WHERE over these inputs alone."""
        where = self.query.args.get("where")
        conditions = []
        for part in comparisons(where.this) if where is not None else ():
            scope = Scope(self.text, clause.both)
            bound = over_rowtimes(clause, scope.bind(part))
            plain = not (scope.problems or scope.promises or has_aggregates(bound) or part.find(CurrentRowTimestamp))
            if plain and ROWTIME not in columns_in([bound]):
                conditions += comparisons(bound)
        return conditions

    def _open(self, clause: Clause, distance: Range, above: list[exp.Expr]) -> Range:
        """Return the range of a join that its condition does not bound; without one on time, equal rowtimes."""
        left, [right] = clause.timed
        if between(above, left, right).timed:
            hint = "WHERE sees the rows without a match too, and drops them. " + self._limited(clause, distance)
            what = "the rowtimes of an outer join are compared in ON, not in WHERE"
            raise self._refused("R152", what, self.query.args["where"], hint)
        given = clause.node.args
        untimed = Untimed(self.binder, self.query, self.name, clause, partial(self._limited, clause, distance))
        if not distance.timed and (given.get("on") or given.get("using") or given.get("method")):
            if not compares_windows(clause, distance.rest):
                if clause.node.meta.get("subquery"):
                    raise self._timeless(clause, untimed, distance.rest)
                self.sources.warnings.append(untimed.judge(distance.rest))
            return replace(distance, low=0, high=0)
        times = None if distance.timed else untimed.times(distance.rest)
        if self.query.args.get("unbounded_state"):
            return distance.at_least(-EVER).at_most(EVER)
        if times is not None:
            what = "the condition compares other times than the rowtimes, so every row would be kept forever"
            raise untimed.refused("R152", what, times)
        if distance.timed:
            open_end = "from below" if distance.low is None else "from above"
            if distance.low is None and distance.high is None:
                open_end = "by an interval that is a fixed length of time"
            earlier, later = self._times(clause)
            what = f"the condition does not limit {later} - {earlier} {open_end}"
            what = f"{what}, so rows would be kept forever"
        else:
            what = "a join without a condition would keep every row forever"
        files = not distance.timed and any(timed_by_files(source.node) for source in clause.sources)
        hint = untimed.promotion(None) if files else self._limited(clause, distance)
        raise self._refused("R152", what, clause.node.this, hint)

    def _limited(self, clause: Clause, distance: Range | None) -> str:
        """Return how to limit the time between the rows, beside what limits it; ``None``: in its place."""
        number = next(n for n, node in enumerate(self.query.args["joins"]) if node is clause.node)
        limit = missing_limit(distance or Range(), *self._times(clause))
        rewritten = rewrites.joined(self.query, number, limit, instead=distance is None)
        return rewrites.shown(rewritten, lambda query: self.binder.binds(query, self.name), _LIMITED)

    def _times(self, clause: Clause) -> list[str]:
        """Return the rowtimes of the first inputs, by the names of columns that are equal to them if ON has these."""
        on = clause.node.args.get("on")
        used = {column.name.lower() for column in on.find_all(exp.Column)} if on is not None else set[str]()
        firsts = [side[0] for side in clause.timed]
        names = [
            next((name for name, c in one.columns if clause.same.get(c.name) and name.lower() in used), "ROWTIME")
            for one in firsts
        ]
        names = names if "ROWTIME" not in names else ["ROWTIME", "ROWTIME"]
        return [f"{one.alias}.{name}" for one, name in zip(firsts, names, strict=True)]

    def _timeless(self, clause: Clause, untimed: Untimed, rest: Sequence[exp.Expr]) -> Refused:
        """Refuse a sub-query of a stream without a condition on rowtimes: it is unknown which rows it means.

        Raises ``PromotedInputs`` as `Untimed.times` does.
        """
        left, right = clause.inputs[0][0].alias, clause.inputs[1][0].alias
        if (times := untimed.times(rest)) is not None:
            what = f"a sub-query of the stream {right} compares other times than the rowtimes"
            return untimed.refused("R152", what, times)
        what = f"a sub-query of the stream {right} does not limit the time of its rows"
        limit = f"{right}.ROWTIME BETWEEN {left}.ROWTIME - INTERVAL '1' HOUR AND {left}.ROWTIME"
        return self._refused("R152", what, clause.node.this, f"Limit the time between them, in its WHERE: {limit}.")

    # -- a stream and a table ---------------------------------------------------------

    def _with_table(
        self, clause: Clause, tables: Sequence[bool], on: exp.Expr | None, merged: Mapping[str, exp.Expr]
    ) -> From:
        """Join the stream's rows with the rows of the table; the table may be on either side."""
        if all(tables):
            raise self._refused("R155", "no input of the join is a stream", clause.node.this, "Join a stream.")
        n = tables.index(False)
        if clause.outer[1 - n]:
            what = "an outer join that keeps the rows of a table would never know which of them have no match"
            if clause.alone:
                what = (
                    "a join that keeps rows of a table would never know which of them still get a match from the stream"
                )
            hint = "Keep the rows of the stream: LEFT JOIN with the stream on the left."
            raise self._refused("R154", what, clause.node.this, _SWAPPED.get(clause.alone, hint))
        stream, table = clause.sources[n], clause.sources[1 - n]
        below, columns = stream.node, clause.columns[n]
        if is_derived(clause.node):
            alias = clause.inputs[1 - n][0].alias
            place = f"{self.name}.{alias}.asked"
            below, columns, on = computed_below(below, columns, on, lambda: self.sources.fresh(place), f"{alias}_asked")
        if refreshed(meets := table.node):
            meets = with_versions(meets, below, self.sources.fresh(f"{self.name}.{clause.inputs[1 - n][0].alias}"))
        sides = (Side(columns), Side(clause.columns[1 - n]))
        outer = clause.outer[n] and not clause.alone
        node = TableJoin(self.sources.fresh(f"{self.name}.join"), (below, meets), sides, on, outer, clause.alone)
        inputs = (
            clause.inputs[n]
            if clause.alone
            else [
                replace(source, optional=source.optional or clause.outer[n]) if tables[side] else source
                for side in (0, 1)
                for source in clause.inputs[side]
            ]
        )
        names = dict(clause.columns[n])
        lineage = {names[old]: value for old, value in stream.lineage.items() if old in names}
        return From(node, tuple(inputs), lineage, merged)

    # -- the operator -----------------------------------------------------------------

    def _built(self, clause: Clause, distance: Range, stamps: tuple[int, int], merged: Mapping[str, exp.Expr]) -> From:
        assert distance.low is not None
        assert distance.high is not None
        ahead = (distance.high, -distance.low)
        own: dict[str, str] = {}
        sides, inputs, lineage = [], [], {}
        for n in (0, 1):
            stamp = stamps[n] if clause.outer[n] else None
            lag = max(0, ahead[n], stamp or 0)
            always = not lag and not clause.outer[1 - n]  # its rowtime is that of the joined row
            mine = [one.alias for one in clause.inputs[n] if one.rowtime == PLACES[n][0]]
            times = {} if always else {alias: unique(f"{alias}_rowtime", self._taken) for alias in mine}
            sides.append(Side(clause.columns[n], tuple(times.values()), stamp))
            for one in clause.inputs[n]:
                time = times.get(one.alias, ROWTIME) if one.alias in mine else one.rowtime
                optional = one.optional or clause.outer[1 - n]
                inputs.append(replace(one, rowtime=time, lag=one.lag + lag, optional=optional))
            names, here = dict(clause.columns[n]), next(iter(times.values()), "")
            same = {new: clause.same[new] for new in names.values() if new in clause.same}
            moved = {new: here if time == PLACES[n][0] else time for new, time in same.items()}
            own |= {new: time for new, time in moved.items() if time}
            if always:
                lineage_of_side = clause.sources[n].lineage
                lineage.update({names[name]: value for name, value in lineage_of_side.items() if name in names})
        left, right = (source.node for source in clause.sources)
        on = _all(distance.rest)
        name = self.sources.fresh(f"{self.name}.join")
        node = Join(name, (left, right), (sides[0], sides[1]), distance.low, distance.high, on, clause.alone)
        endless = [kept.what for kept in node.keeps() if kept.by == "nothing"]
        if endless:
            what, place = f"the {' and the '.join(endless)} are kept until the stream ends", clause.node.this
            hint = self._limited(clause, distance)
            self.sources.warnings.append(Problem("R185", what, place_of(self.text, place), hint, warns=True))
        seen = inputs[: len(clause.inputs[0])] if clause.alone else inputs
        return From(node, tuple(seen), lineage, merged, own, clause.optional)


def _all(tests: Sequence[exp.Expr]) -> exp.Expr | None:
    return exp.and_(*tests) if tests else None


def _wanted(query: exp.Select, sources: Sequence[Input]) -> set[str] | None:
    """Return the lower-case names of the columns of ``sources`` that a query mentions; ``None``: all."""
    everything = any(isinstance(node.parent, exp.Select | exp.Column) for node in query.find_all(exp.Star))
    natural = any(str(join.args.get("method") or "").upper() == "NATURAL" for join in query.args["joins"])
    if everything or natural:
        return None
    using = {name.name.lower() for join in query.args["joins"] for name in join.args.get("using") or ()}
    inputs = {item.alias_or_name.lower() for item in (query.args["from_"].this, *(j.this for j in query.args["joins"]))}
    columns = {source.alias.lower(): {name.lower() for name, _ in source.columns} | {"rowtime"} for source in sources}
    return using | {name for column in query.find_all(exp.Column) for name in _named(column, inputs, columns)}


def _named(column: exp.Column, inputs: set[str], columns: Mapping[str, set[str]]) -> list[str]:
    """Return what may be a column name in ``s.x``: a column of s, or a struct column s with a field."""
    names = [part.name.lower() for part in column.parts]
    if len(names) == 2 and names[1] not in columns.get(names[0], {names[1]}):  # noqa: PLR2004 - a name and its input
        return names
    return names if len(names) > 2 or names[0] not in inputs else names[1:] or names  # noqa: PLR2004 - a name and its input
