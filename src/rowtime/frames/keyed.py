"""Frames with keys in place of text with a collation: by these they are grouped, joined and sorted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from rowtime.core.columns import COLLATED_KEY
from rowtime.expr.conditions import col
from rowtime.frames.answers import Part
from rowtime.frames.catalyst import answered
from rowtime.frames.kinds import is_collated
from rowtime.frames.translated import parsed
from rowtime.frames.words import Untranslated
from rowtime.sql.generate import quoted, to_spark

if TYPE_CHECKING:
    from rowtime.frames.frame import Frame

OF_WINDOWS: Final = re.compile(r"\bOVER\s*\(", re.IGNORECASE)


def key_of(name: str) -> str:
    """Return the name of the column with the keys of a column."""
    return f"{COLLATED_KEY}{name}"


def with_keys(rows: Frame, names: Iterable[str]) -> Frame:
    """Return the rows with a column of keys (`key_of`) for each of some columns whose values have a collation."""
    fields = {name.lower(): (name, kind) for name, kind in rows.fields}
    wanted = dict.fromkeys(
        fields[name.lower()] for name in names if key_of(fields[name.lower()][0]) not in rows.columns
    )
    parts = [Part(quoted(name), ((name, kind),), key=True) for name, kind in wanted if is_collated(kind)]
    if not parts:
        return rows
    rows.share()
    for part, (kind, values) in zip(parts, answered(rows.sparkSession, dict.fromkeys(parts, rows)), strict=True):
        rows = rows.with_column(key_of(part.columns[0][0]), kind, values)
    return rows


def with_keys_of(rows: Frame, terms: Sequence[str]) -> tuple[Frame, list[str]]:
    """Return rows with keys, and terms of ORDER BY over these; raises ``Untranslated`` if no term has a collation."""
    collated = {name.lower(): name for name, kind in rows.fields if is_collated(kind)}
    trees = [parsed(f"SELECT 1 ORDER BY {term}").args["order"].expressions[0].copy() for term in terms]
    columns = [column for tree in trees for column in tree.find_all(exp.Column) if column.name.lower() in collated]
    if not columns:
        raise Untranslated(", ".join(terms))
    names = [collated[column.name.lower()] for column in columns]
    for column, name in zip(columns, names, strict=True):
        column.replace(col(key_of(name)))
    return with_keys(rows, names), [*map(to_spark, trees)]


def with_windows_over_keys(rows: Frame, items: Sequence[str]) -> tuple[Frame, list[str]]:
    """Return rows with keys, and a select list whose windows compare these instead of texts with a collation."""
    of = {name.lower(): name for name, kind in rows.fields if is_collated(kind)}
    wanted: dict[str, None] = {}

    def compared(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and (name := of.get(node.name.lower())) is not None:
            wanted[name] = None
            return col(key_of(name))
        return node

    texts: list[str] = []
    for item in items:
        if item == "*" or not OF_WINDOWS.search(item):
            texts += map(quoted, rows.columns) if item == "*" else [item]
            continue
        tree = parsed(item).copy()
        for window in [*tree.find_all(exp.Window)]:
            for part in ("partition_by", "order"):
                given = window.args.get(part)
                if isinstance(given, list):
                    window.set(part, [one.transform(compared) for one in given])
                elif given is not None:
                    window.set(part, given.transform(compared))
        texts.append(to_spark(tree))
    if not wanted:
        raise Untranslated(str(items))
    return with_keys(rows, wanted), texts
