"""Binds an AS OF join: each left row with the last right row that has its key.

Semantics 6. Both streams become one in stream order. At equal rowtimes, the right row comes first. LAST_VALUE over the
keys finds the right row; afterwards the rows of the right are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeGuard

from sqlglot import exp

from rowtime.core.columns import AS_OF_ROW, IS_LEFT, KEY, LATEST, PLACES, ROWTIME
from rowtime.core.errors import Refused
from rowtime.core.time import END
from rowtime.expr.conditions import col, columns_in
from rowtime.kernels.window_functions import Nth
from rowtime.kernels.windowed import Frame
from rowtime.operators.contract import Column, Operator
from rowtime.operators.over.over import Over
from rowtime.operators.over.over_calls import Call
from rowtime.operators.rows.select import Item, Select
from rowtime.operators.streams.union_all import UnionAll
from rowtime.plan.bind.join_range import Clause, comparisons
from rowtime.plan.bind.rowtime_columns import rowtime_named
from rowtime.plan.bind.scope import From, Input, null_of, type_of
from rowtime.plan.bind.sources import Binder
from rowtime.sql.dialect import Rowtime
from rowtime.sql.generate import to_rowtime
from rowtime.sql.places import place_of, refuse_at

CODE = "R156"
LEFT, RIGHT = 0, 1
_LAST = Nth(1, last=True, ignore_nulls=True)
_WHOLE = (exp.DType.TINYINT, exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)


def refuse_as_of(text: str, item: exp.Expr, what: str, hint: str) -> None:
    """Refuse an AS OF time that is not possible."""
    version = item.args.get("version") or item.args.get("match")
    if version is not None:
        raise refuse_at(text, version, CODE, what, hint)


def take_match(text: str, node: exp.Join, inputs: Sequence[From]) -> None:
    """Translate ASOF JOIN … MATCH_CONDITION to its meaning: the right FOR SYSTEM_TIME AS OF the left's rowtime.

    ``inputs``: the left and the right ones. A column that equals the rowtime of its input stands for it.
    """
    source, right = node.this, inputs[RIGHT].inputs[0].alias
    for times in filter(None, (source.args.get("match"), source.args.get("version"))):
        for column in list(times.find_all(exp.Column)):
            column.replace(rowtime_named(column, inputs))
    match = source.args.get("match")
    if str(node.args.get("method") or "").upper() != "ASOF":
        if match is None:
            return
        hint = "Write ASOF JOIN, or put the condition into ON."
        raise refuse_at(text, match, CODE, "MATCH_CONDITION is allowed in an ASOF JOIN only", hint)
    test = match.unnest() if match is not None else None
    sides = (test.this, test.expression) if isinstance(test, exp.GTE | exp.LTE) else ()
    later, earlier = sides[:: 1 if isinstance(test, exp.GTE) else -1] or (None, None)
    if not _is_rowtime(later) or not _is_rowtime(earlier) or earlier.text("table").lower() != right.lower():
        hint = f"Write MATCH_CONDITION (a.ROWTIME >= {right}.ROWTIME), where a is the left input."
        what = "an ASOF JOIN gives the last row of the right input that is not later than the row of the left input"
        raise refuse_at(text, match or source, CODE, what, hint)
    source.set("version", exp.Version(this="TIMESTAMP", kind="AS OF", expression=later.copy()))
    source.set("match", None)
    node.set("method", None)


def _is_rowtime(value: exp.Expr | None) -> TypeGuard[exp.Column]:
    return isinstance(value, exp.Column) and value.name.lower() == "rowtime"


@dataclass(frozen=True)
class AsOf:
    """One JOIN … FOR SYSTEM_TIME AS OF; ``time`` is the column of b.ROWTIME in the joined rows."""

    binder: Binder
    name: str
    clause: Clause
    time: str

    def bind(self, on: exp.Expr | None, merged: Mapping[str, exp.Expr]) -> From:
        """Return the operators, and the names of both inputs. Raises ``Refused``."""
        self._check()
        keys = list(self._keys(on))
        inputs = (*map(self._left, self.clause.inputs[LEFT]), *map(self._right, self.clause.inputs[RIGHT]))
        names = dict(self.clause.columns[LEFT])
        lineage = {names[old]: value for old, value in self.clause.sources[LEFT].lineage.items() if old in names}
        return From(self._operators(keys), inputs, lineage, merged)

    def _refused(self, what: str, node: exp.Expr, hint: str) -> Refused:
        return refuse_at(self.binder.text, node, CODE, what, hint)

    # -- refusals ---------------------------------------------------------------------

    def check_time(self, version: exp.Expr, leading: Sequence[str]) -> None:
        """Raise ``Refused`` unless the time is the rowtime of one of the inputs ``leading``."""
        hint = f"Write FOR SYSTEM_TIME AS OF {leading[0]}.ROWTIME."
        if (version.name.upper(), version.text("kind").upper()) != ("TIMESTAMP", "AS OF"):
            raise self._refused("streams can be joined AS OF a rowtime only", version, hint)
        at = version.expression
        is_rowtime = isinstance(at, exp.Column) and at.name.lower() == "rowtime"
        if not is_rowtime or at.text("table").lower() not in [alias.lower() for alias in leading]:
            raise self._refused("the time of a join as of a time must be the rowtime of its left row", version, hint)

    def _check(self) -> None:
        clause, source = self.clause, self.clause.node.this
        version = source.args["version"]
        if clause.tabled:
            what = "a table has one version: its rows at the first start"
            raise self._refused(what, version, "Leave FOR SYSTEM_TIME out, or define the table with REFRESH EVERY.")
        self.check_time(version, [one.alias for one in clause.inputs[LEFT] if one.rowtime == PLACES[LEFT][0]])
        if clause.outer[RIGHT]:
            what, hint = (
                "an input as of a time gives only the last row of each key, not all rows",
                "Write JOIN or LEFT JOIN.",
            )
            raise self._refused(what, source, hint)
        if any(one.window is not None for side in clause.inputs for one in side):
            what = "a join as of a time cannot have a window: it looks for the last row, however old that row is"
            hint = f"Leave OVER out, and compare {clause.inputs[RIGHT][0].alias}.ROWTIME in WHERE."
            raise self._refused(what, source, hint)

    # -- the keys ---------------------------------------------------------------------

    def _keys(self, on: exp.Expr | None) -> Iterator[tuple[exp.Expr, exp.Expr]]:
        """Yield the left and the right side of each equality, over the columns of the inputs, of one type."""
        if on is None:
            hint = "Write ON with an equality, or ON TRUE for the last row of the stream."
            raise self._refused("a join as of a time needs a condition", self.clause.node.this, hint)
        for part in comparisons(on):
            if isinstance(part, exp.Boolean) and part.this:
                continue
            pair = (part.this, part.expression) if isinstance(part, exp.EQ) else ()
            sides = [(self._side(one), self._below(one)) for one in pair]
            if {side for side, _ in sides} != {LEFT, RIGHT}:
                hint = "Filter the right input in a sub-query, and the joined rows with WHERE."
                what = "the condition of a join as of a time may only contain equalities between its two sides"
                raise self._refused(what, self._given(part), hint)
            left, right = (value for _, value in sorted(sides, key=lambda one: one[0] or 0))
            yield self._alike(left, right, self._given(part))

    def _given(self, part: exp.Expr) -> exp.Expr:
        """Return the place of a condition, or of the input if USING created it."""
        return part if place_of(self.binder.text, part) else self.clause.node.this

    def _side(self, value: exp.Expr) -> int | None:
        """Return the side whose columns an expression reads; ``None`` if it is not exactly one."""
        names = columns_in([value])
        return next((n for n in (LEFT, RIGHT) if names and names <= self._below_of[n].keys()), None)

    @cached_property
    def _below_of(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return how each side's columns are named in its input."""
        left, right = ({new: old for old, new in columns} for columns in self.clause.columns)
        return {**left, PLACES[LEFT][0]: ROWTIME}, {**right, PLACES[RIGHT][0]: ROWTIME}

    def _below(self, value: exp.Expr) -> exp.Expr:
        copied = value.copy()
        names = {**self._below_of[LEFT], **self._below_of[RIGHT]}
        for column in copied.find_all(exp.Column):
            column.set("this", exp.to_identifier(names.get(column.name, column.name), quoted=True))
        return copied

    def _alike(self, left: exp.Expr, right: exp.Expr, at: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
        left_type, right_type = (
            exp.DataType.build(self._type(n, value, at), dialect=Rowtime) for n, value in enumerate((left, right))
        )
        if left_type != right_type and left_type.this in _WHOLE and right_type.this in _WHOLE:
            left_type = right_type = exp.DataType.build("BIGINT", dialect=Rowtime)
        if left_type != right_type:
            hint = f"Cast one of them: CAST(… AS {left_type.sql('spark')})."
            raise self._refused(
                f"the keys have the types {left_type.sql('spark')} and {right_type.sql('spark')}", at, hint
            )
        return exp.cast(left, left_type), exp.cast(right, left_type)

    def _type(self, side: int, value: exp.Expr, at: exp.Expr) -> str:
        """Return the type of a value of an input; for an empty input it must be known before the first row."""
        kind = type_of(self.clause.sources[side].node.emits().columns, value)
        if not kind:
            name = to_rowtime(value).replace("`", "")
            alias = name if isinstance(value, exp.Column) else "cast_key"
            hint = f"Read a view that casts it: SELECT STREAM CAST({name} AS STRING) AS {alias}, for example."
            raise self._refused(f"the type of {name} is not known before its first row", at, hint)
        return kind

    # -- the joined rows --------------------------------------------------------------

    def _left(self, source: Input) -> Input:
        """Return an input of the left side: the joined row has its rowtime."""
        columns = tuple((name, Column(column.name, column.type)) for name, column in source.columns)
        return replace(
            source, columns=columns, rowtime=ROWTIME if source.rowtime == PLACES[LEFT][0] else source.rowtime
        )

    def _right(self, source: Input) -> Input:
        """Return the right input; its row may be arbitrarily older."""
        columns = tuple((name, Column(column.name, column.type)) for name, column in source.columns)
        optional = source.optional or self.clause.outer[LEFT]
        return replace(source, columns=columns, rowtime=self.time, lag=END, optional=optional)

    def _columns(self, side: int) -> list[Item]:
        """Return the output columns of a side, with their expressions over its input."""
        columns = []
        for old, new in self.clause.columns[side]:
            value = col(old)
            columns.append(Item(Column(new, self._type(side, value, self.clause.node.this)), value))
        return columns + ([Item(Column(self.time, "TIMESTAMP"), col(ROWTIME))] if side == RIGHT else [])

    def _operators(self, keys: Sequence[tuple[exp.Expr, exp.Expr]]) -> Operator:
        left, right = self._columns(LEFT), self._columns(RIGHT)
        kind = f"STRUCT<{', '.join(f'f{n}: {item.column.type}' for n, item in enumerate(right))}>"
        fields = [part for n, item in enumerate(right) for part in (exp.Literal.string(f"f{n}"), item.expression)]
        struct = exp.Anonymous(this="named_struct", expressions=fields)
        row = Item(Column(AS_OF_ROW, kind), exp.cast(struct, kind, dialect=Rowtime))
        nothing = [Item(item.column, null_of(item.column.type)) for item in left]
        not_null = [exp.Not(this=exp.Is(this=exp.paren(key.copy()), expression=exp.null())) for _, key in keys]
        streams = (
            self._side_rows(
                RIGHT, [key for _, key in keys], [*nothing, row], exp.and_(*not_null) if not_null else None
            ),
            self._side_rows(LEFT, [key for key, _ in keys], [*left, Item(row.column, null_of(kind))], None),
        )
        fresh, names = self.binder.sources.fresh, [item.column.name for item in left]
        union = UnionAll(fresh(f"{self.name}.union"), streams)
        items = tuple(Item(Column(_key(n)), col(_key(n))) for n in range(len(keys)))
        typed = exp.IgnoreNulls(this=exp.Last(this=col(AS_OF_ROW)))
        latest = Call(Column(LATEST, kind), _LAST, col(AS_OF_ROW), Frame(None), typed)
        over = Over(fresh(f"{self.name}.as of"), union, items, (latest,), (IS_LEFT, *names))
        self.binder.sources.compared.add(over.name)
        values = [Item(item.column, exp.Dot(this=col(LATEST), expression=exp.to_identifier(f"f{n}", quoted=True)))
                 for n, item in enumerate(right)]  # fmt: skip
        passed = [Item(item.column, col(item.column.name)) for item in left]
        matched = exp.Not(this=exp.Is(this=col(LATEST), expression=exp.null()))
        kept = col(IS_LEFT) if self.clause.outer[LEFT] else exp.and_(col(IS_LEFT), matched)
        return Select(fresh(f"{self.name}.join"), over, (*passed, *values), kept)

    def _side_rows(
        self, side: int, keys: Sequence[exp.Expr], values: Sequence[Item], where: exp.Expr | None
    ) -> Operator:
        """Return one input in the common form: keys, the side, the left's columns, the right's row."""
        source = self.clause.sources[side].node
        key_columns = [Item(Column(_key(n)), key) for n, key in enumerate(keys)]
        mine = Item(Column(IS_LEFT, "BOOLEAN"), exp.Boolean(this=side == LEFT))
        return Select(self.binder.sources.fresh(f"{self.name}.side"), source, (*key_columns, mine, *values), where)


def _key(number: int) -> str:
    return f"{KEY}{number}"
