"""Expressions over rows of a frame, tried row by row.

DuckDB computes those that have a translation, for the rows for which it can. What fails there may not fail in Spark, so
Spark tries these rows, and all rows for expressions without a translation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowtime.frames.answers import Part, struct_of
from rowtime.frames.attempted import TRIED_VALUE
from rowtime.frames.catalyst import OTHER_ROWS, answered, part_of
from rowtime.frames.kinds import struct_text
from rowtime.frames.queries import Uncomputed, called
from rowtime.frames.tables import delivered
from rowtime.frames.translated import parsed
from rowtime.frames.words import Untranslated
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame


@dataclass(frozen=True)
class _Computed:
    """The values of an expression for the rows that are not ``failed``."""

    kind: str
    values: pa.Array
    failed: pa.Array

    def with_others(self, others: pa.StructArray | None) -> pa.StructArray:
        """Return the values in structs; ``others``: those of the rows that failed here."""
        given = struct_of(self.values, pa.repeat(pa.scalar(value=False), len(self.values)))
        if others is None:
            return given
        failed = self.failed.to_numpy(zero_copy_only=False)
        places = np.where(failed, len(given) + np.cumsum(failed) - 1, np.cumsum(~failed) - 1)
        return pa.concat_arrays([given, others]).take(pa.array(places))


def tried(rows: Frame, texts: Mapping[str, str]) -> Frame:
    """Return the rows with a column for each expression: a struct of its value ``c0``; NULL if it cannot be computed.

    Raises ``Untranslated`` for an expression that is no function of the row, or calls a function of the user.
    """
    rows.share()
    computed = _computed(rows, {name: text for name, text in texts.items() if _has_translation(rows, text)})
    parts: dict[Part, Frame] = {}
    part_by_name: dict[str, Part] = {}
    for name, text in texts.items():
        ours = computed.get(name)
        if ours is None or pc.any(ours.failed).as_py():
            part = replace(part_of(rows.sparkSession, f"{text} AS {quoted(name)}", rows.fields)[1], tries=True)
            parts[part] = rows if ours is None else rows.chosen(ours.failed)
            part_by_name[name] = part
    answers = dict(zip(parts, answered(rows.sparkSession, parts), strict=True)) if parts else {}
    for name in texts:
        kind, others = answers[part_by_name[name]] if name in part_by_name else ("", None)
        ours = computed.get(name)
        values = others if ours is None else ours.with_others(others)
        rows = rows.with_column(name, struct_text({TRIED_VALUE: kind if ours is None else ours.kind}), values)
    return rows


def _has_translation(rows: Frame, text: str) -> bool:
    try:
        tree = parsed(text)
        return tree.find(*OTHER_ROWS) is None and rows.scope.value(tree.unalias()).type != "void"
    except Untranslated:
        return False


def _computed(rows: Frame, texts: Mapping[str, str]) -> dict[str, _Computed]:
    """Return the values that DuckDB computes; without the expressions of which it does not know where they fail."""
    none = pa.repeat(pa.scalar(value=False), rows.count())
    try:
        return _values(rows, texts, none)
    except Uncomputed:
        pass
    known: dict[str, _Computed] = {}
    for name, text in texts.items():
        try:
            known |= _values(rows, {name: text}, none)
        except Uncomputed:
            try:
                known |= _values(rows, {name: text}, _failed(rows, text))
            except Uncomputed:  # TRY does not compute what stands beside a NULL
                continue
    return known


def _values(rows: Frame, texts: Mapping[str, str], failed: pa.Array) -> dict[str, _Computed]:
    """Return the values of expressions for the rows that have not failed; raises ``Uncomputed``."""
    if not texts:
        return {}
    good = rows.chosen(pc.invert(failed)).valued([f"{text} AS {quoted(name)}" for name, text in texts.items()])
    return {
        name: _Computed(kind, delivered(good.column(name), kind).combine_chunks(), failed) for name, kind in good.fields
    }


def _failed(rows: Frame, text: str) -> pa.Array:
    """Return for which rows DuckDB fails; raises ``Uncomputed``."""
    query, value = rows.query, rows.scope.value(parsed(text).unalias())
    test = called(f"TRY(struct_pack({TRIED_VALUE} := {value.sql})) IS NULL", 0)
    return query.over(f"SELECT {test} FROM {query}").rows().column(0).combine_chunks()  # noqa: S608 - translated
