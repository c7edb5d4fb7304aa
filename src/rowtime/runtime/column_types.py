"""The types of columns that are computed: what Spark's analyzer says of them, without rows and without a job.

The plan knows the types of declared columns; of an expression only Spark knows. Where the type
of a result must not depend on which rows a tick brings (two inputs of a UNION ALL, the side of an
outer join that never had a row), it is found here, from the declared columns upwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import functions as F  # noqa: N812

from rowtime.operators.anti_join import AntiJoin
from rowtime.operators.contract import A, Operator, P, T, W, quoted
from rowtime.operators.event_groups import EventGroups
from rowtime.operators.group_by import GroupBy
from rowtime.operators.group_values import GroupByValues
from rowtime.operators.join import Join
from rowtime.operators.lifetime_join import LifetimeJoin
from rowtime.operators.over import Over
from rowtime.operators.pane_fires import INDEX, LAST
from rowtime.operators.panes import Panes
from rowtime.operators.select import Item, Select
from rowtime.operators.session import ENDS, STARTS, SessionGroup
from rowtime.operators.table_join import TableJoin
from rowtime.operators.tsort import BEFORE
from rowtime.operators.union_all import UnionAll
from rowtime.operators.values import type_text
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Groups = GroupBy | GroupByValues | EventGroups | Panes | SessionGroup
_TIMES = (T, A, BEFORE, STARTS, ENDS)
_INTERNALS = {W: "STRING", P: "BIGINT", **dict.fromkeys(_TIMES, "TIMESTAMP")}


class ColumnTypes:
    """The types of the columns of one plan, each found once; empty where even Spark does not know."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, node: Operator) -> tuple[str, ...]:
        """The types of what an operator emits, as Spark's type text, in the order of its columns."""
        if node.name not in self._known:
            self._known[node.name] = self._found(node)
        return self._known[node.name]

    def _found(self, node: Operator) -> tuple[str, ...]:
        columns = node.emits().columns
        if all(column.type for column in columns):
            return tuple(column.type for column in columns)
        try:
            computed = {field.name.lower(): type_text(field.dataType) for field in self._computed(node).schema}
        except AnalysisException:  # its first rows will say what is wrong
            computed = {}
        return tuple(column.type or computed.get(column.name.lower(), "") for column in columns)

    def rows(self, node: Operator) -> DataFrame:
        """No rows, with ours and those of the operator's columns whose types are known."""
        known = dict(zip(node.emits().names, self.of(node), strict=True))
        typed = {**_INTERNALS, **{name: kind for name, kind in known.items() if kind}}
        texts = [f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in typed.items()]
        return self._spark.range(0).selectExpr(*texts)

    def between(self, node: Operator) -> list[DataFrame]:
        """What stands between the inputs of a join or group and its result: keys beside rows, keys and aggregates."""
        if not isinstance(node, Groups):
            return [self._joined(node)] if isinstance(node, Join | TableJoin | LifetimeJoin | AntiJoin) else []
        keyed = self._keyed(node)
        taken = [item for item in node.aggregates if _takes(keyed, item.sql)]
        return [keyed, self._groups(node, taken)]

    def _computed(self, node: Operator) -> DataFrame:
        match node:
            case Select():
                return self.rows(node.input).selectExpr(*(item.sql for item in node.items))
            case Over():
                rows, calls = self.rows(node.input), ((call.typed, call.column.name) for call in node.calls)
                return rows.crossJoin(rows.selectExpr(*(f"{to_spark(of)} AS {quoted(name)}" for of, name in calls)))
            case UnionAll():
                parts = (self.rows(one).selectExpr(*map(quoted, one.emits().names)) for one in node.inputs)
                return reduce(lambda left, right: left.union(right), parts).toDF(*node.emits().names)
            case Join() | TableJoin() | LifetimeJoin() | AntiJoin():
                return self._joined(node)
            case _ if isinstance(node, Groups):
                return self._grouped(node)
            case _:  # what passes columns on
                return self.rows(node.inputs[0])

    def _joined(self, node: Join | TableJoin | LifetimeJoin | AntiJoin) -> DataFrame:
        """What goes on of each input, under its new names, side by side."""
        if isinstance(node, Join | TableJoin):
            sides = [side.columns for side in node.sides]
        else:
            given = node.inputs[: 1 if isinstance(node, AntiJoin) else 2]
            sides = [
                tuple(zip(one.emits().names, names, strict=True)) for one, names in zip(given, node.names, strict=False)
            ]
        parts = (
            self.rows(source).selectExpr(*(f"{quoted(old)} AS {quoted(new)}" for old, new in side))
            for source, side in zip(node.inputs, sides, strict=False)
        )
        return reduce(lambda left, right: left.crossJoin(right), parts)

    def _keyed(self, node: Groups) -> DataFrame:
        return self.rows(node.inputs[0]).selectExpr("*", *(key.sql for key in node.keys))

    def _groups(self, node: Groups, aggregates: Sequence[Item]) -> DataFrame:
        calls = [F.expr(item.sql) for item in aggregates]
        keys = [key.column.name for key in node.keys]
        groups = self._keyed(node).groupBy(*keys, STARTS, ENDS).agg(F.count(F.lit(1)).alias("__n"), *calls)
        return groups.selectExpr("*", f"__n AS {LAST}", f"__n AS {INDEX}") if isinstance(node, Panes) else groups

    def _grouped(self, node: Groups) -> DataFrame:
        return self._groups(node, node.aggregates).selectExpr(*(item.sql for item in node.items))


def _takes(rows: DataFrame, aggregate: str) -> bool:
    """False for an aggregate that Spark refuses: what stands beside it is typed without it."""
    try:
        rows.groupBy().agg(F.expr(aggregate))
    except (AnalysisException, ParseException):
        return False
    return True
