"""What all operators that make groups have in common: keys, aggregates, and a select list over both by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from rowtime.operators.contract import Operator, Pairs, quoted
from rowtime.sql.generate import to_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rowtime.operators.select import Item


class Groups(Operator):
    """Makes groups by ``keys``; ``aggregates`` of each; ``items`` and ``having`` are over both by name."""

    keys: tuple[Item, ...]
    aggregates: tuple[Item, ...]
    items: tuple[Item, ...]
    having: exp.Expr | None

    edges: ClassVar[tuple[str, ...]] = ()
    """Columns of the rows (TIMESTAMP) that tell groups apart besides the keys, and that items may be over."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Columns of the groups (BIGINT) that items may be over besides keys and aggregates."""

    def same_keys(self) -> Pairs:
        """The keys of a group and of its rows, as they stand beside the columns or among them."""
        hidden = self.emits().extra
        names = {item.expression.name: item for item in self.items if isinstance(item.expression, exp.Column)}
        found: list[tuple[str, str]] = []
        for key in self.keys:
            own = key.column.name
            shown = own if own in hidden else names[own].column.name if own in names else None
            found += [] if shown is None else [(quoted(shown), to_spark(key.expression))]
        return tuple(found)

    def typed(self, rows: Callable[[Operator], DataFrame]) -> DataFrame:
        """The select list over groups of no rows."""
        return self._empty(self._beside_keys(rows), self.aggregates).selectExpr(*(item.sql for item in self.items))

    def between(self, rows: Callable[[Operator], DataFrame]) -> list[DataFrame]:
        """The rows with the keys beside them; and the groups, without the aggregates that Spark refuses."""
        keyed = self._beside_keys(rows)
        return [keyed, self._empty(keyed, [item for item in self.aggregates if _takes(keyed, item.sql)])]

    def _beside_keys(self, rows: Callable[[Operator], DataFrame]) -> DataFrame:
        return rows(self.inputs[0]).selectExpr("*", *(key.sql for key in self.keys))

    def _empty(self, keyed: DataFrame, aggregates: Sequence[Item]) -> DataFrame:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        calls = [F.expr(item.sql) for item in aggregates]
        numbers = [F.count(F.lit(1)).alias(name) for name in ("__n", *self.numbers)]
        return keyed.groupBy(*(key.column.name for key in self.keys), *self.edges).agg(*numbers, *calls)


def _takes(rows: DataFrame, aggregate: str) -> bool:
    """False for an aggregate that Spark refuses: what stands beside it is typed without it."""
    from pyspark.errors import AnalysisException, ParseException  # noqa: PLC0415
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    try:
        rows.groupBy().agg(F.expr(aggregate))
    except (AnalysisException, ParseException):
        return False
    return True
