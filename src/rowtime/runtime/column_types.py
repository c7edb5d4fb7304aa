"""The types of computed columns, from Spark's analyzer, without rows and without a job.

The plan knows the types of declared columns; frames know those of expressions with a translation (`frames.translated`),
without asking Spark, which takes 10 ms of the processor each time. If the type of a
result must not depend on which rows a tick has (two inputs of a UNION ALL, the side of an outer join that never had a
row), it is found here, from the declared columns upwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from rowtime.core import columns as hidden
from rowtime.frames.frame import Frame
from rowtime.frames.kinds import holds, named
from rowtime.frames.queries import Uncomputed
from rowtime.frames.words import Untranslated
from rowtime.operators.contract import Operator

_TIMES = (
    *(hidden.ROWTIME, hidden.ARRIVAL, hidden.PASSED_ROWTIME, hidden.SESSION_START, hidden.SESSION_END),
    *(hidden.LIFETIME_START, hidden.LIFETIME_END),
)
_INTERNALS = {hidden.WRITER: "STRING", hidden.POSITION: "BIGINT", **dict.fromkeys(_TIMES, "TIMESTAMP")}
_REFUSALS = (AnalysisException, ParseException)


class ColumnTypes:
    """The types of the columns of one plan, each found once; empty if even Spark does not know it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._known: dict[str, tuple[str, ...]] = {}

    def known(self, types: Mapping[str, Sequence[str]]) -> None:
        """Note types that are known already, by operator."""
        self._known.update({name: tuple(of) for name, of in types.items()})

    def of(self, node: Operator) -> tuple[str, ...]:
        """Return the types of an operator's output, as Spark's type text, in the order of its columns."""
        if node.name not in self._known:
            self._known[node.name] = self._typed(node)
        return self._known[node.name]

    def _typed(self, node: Operator) -> tuple[str, ...]:
        columns = node.emits().columns
        if all(column.type for column in columns):
            return tuple(column.type for column in columns)
        try:
            computed = {name.lower(): kind for name, kind in node.typed(self.rows).fields}
        except (AnalysisException, Untranslated, Uncomputed):  # its first rows will show the problem
            computed = {}
        return tuple(column.type or computed.get(column.name.lower(), "") for column in columns)

    def rows(self, node: Operator) -> Frame:
        """Return no rows, with hidden columns and the operator's columns of known types; raises ``Untranslated``."""
        # In a struct, the names of fields keep their case.
        fields = [(name, kind if "<" in kind else named(kind)) for name, kind in self._columns(node).items()]
        if not all(holds(kind) for _, kind in fields):
            raise Untranslated(node.name)
        return Frame.empty(self._spark, fields)

    def here(self, node: Operator) -> list[Frame]:
        """Return the inputs of an operator, and what is between them and its result, as far as frames have the types.

        If an expression can be computed over the first of them that has its columns, Spark accepts it, too.
        """
        tables: list[Frame] = []
        try:
            tables += (self.rows(source) for source in node.inputs)
            tables += node.between(self.rows)
        except (Untranslated, Uncomputed, *_REFUSALS):
            pass
        return tables

    def _columns(self, node: Operator) -> dict[str, str]:
        types = dict(zip(node.emits().names, self.of(node), strict=True))
        return {**_INTERNALS, **{name: kind for name, kind in types.items() if kind}}
