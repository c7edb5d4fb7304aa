"""Unions of frames: columns of different types become as wide as in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rowtime.frames.answers import Part
from rowtime.frames.catalyst import kind_of
from rowtime.frames.translated import Item
from rowtime.frames.values import Value, cast, wider
from rowtime.frames.words import Untranslated
from rowtime.sql.generate import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rowtime.frames.frame import Frame


def common(session: SparkSession, one: str, other: str) -> str:
    """Return the type of a column of a union whose inputs have these types.

    Raises ``Untranslated`` if they have none in Spark, or one that frames do not have.
    """
    try:
        return wider(one, other)
    except Untranslated:  # Spark's rule is that of COALESCE
        return kind_of(session, Part("coalesce(`a`, `b`)", (("a", one), ("b", other))))


def widened(rows: Frame, kinds: Mapping[str, str]) -> Frame:
    """Return the rows with columns of these types; ``kinds``: by lower-case name.

    Raises ``Untranslated``, and ``Uncomputed`` for a value that is none of the type.
    """
    named = [(name, of, kinds[name.lower()]) for name, of in rows.fields]
    try:
        values = [Item(name, cast(Value(f"c{n}", of), kind)) for n, (name, of, kind) in enumerate(named)]
    except Untranslated:
        texts = [
            quoted(name) if of == kind else f"CAST({quoted(name)} AS {kind}) AS {quoted(name)}"
            for name, of, kind in named
        ]
        return rows.valued(texts).of_kinds({name: kind for name, _, kind in named})
    return rows._selected(values)  # noqa: SLF001 - one of ours
