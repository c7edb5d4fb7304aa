"""Lake tables read back: what a pump has written there, and what its rows leave in a table with a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rowtime.plan.bind.sink_options import CHANGE, LakeOptions
from rowtime.plan.formats.lake import LAKES
from rowtime.runtime.claims import pump_of
from rowtime.runtime.sinks.lake import last_of_each
from rowtime.runtime.sinks.lakes import lake_table
from rowtime.runtime.sinks.ownership import tag_of

if TYPE_CHECKING:
    from rowtime.operators.sinks.sink import Sink as SinkNode


def of_lake(node: SinkNode, tick: int, identity: str) -> pa.Table | None:
    """The rows that a pump of a checkpoint has written up to a tick, or those of a table with a key.

    ``None`` where others have changed the table, so that nobody can tell whose its rows are.
    """
    ending = f"-{tag_of(identity, pump_of(node.name))}.parquet"

    def mine(name: str) -> bool:
        return name.startswith("part-") and name.endswith(ending) and int(name.split("-")[1]) <= tick

    options = dict(node.options)
    table = lake_table(node.format, options, pump_of(node.name))
    found = table.rows(mine, merged=bool(LakeOptions.of(options).key))
    names = _written(node)
    return found.select(names) if found is not None and found.num_columns else found


def left_in(node: SinkNode, rows: pa.Table, there: pa.Schema) -> pa.Table:
    """What the rows of a sink leave in its table: all of them, but where the last one of a key counts.

    ``there``: of the table, which may have a decimal with fewer digits behind the point.
    """
    if node.format not in LAKES or not rows.num_rows:
        return rows
    options = LakeOptions.of(dict(node.options))
    for at, field in enumerate(rows.schema):
        found = there.field(field.name).type if field.name in there.names else field.type
        if pa.types.is_decimal(found) and pa.types.is_decimal(field.type) and found.scale < field.type.scale:
            rounded = pc.round(rows.column(at), ndigits=found.scale, round_mode="half_towards_infinity")
            rows = rows.set_column(at, field, rounded)
    if not options.key:
        return rows
    last = last_of_each(rows, options.key)
    if options.mode == "changes":
        last = last.filter(pc.not_equal(last[CHANGE], "RETRACT"))
    return last.select(_written(node))


def _written(node: SinkNode) -> list[str]:
    return LakeOptions.of(dict(node.options)).written(node.columns)
