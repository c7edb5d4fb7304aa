"""Which bound each row met at the gate of events, by its writer and position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowtime.core.columns import MET, POSITION, WRITER
from rowtime.core.time import BEGINNING
from rowtime.kernels.events import Judgement
from rowtime.operators.contract import passed, quoted
from rowtime.operators.rows.by_writer import FEW, joined
from rowtime.operators.rows.halves import reached, value_at
from rowtime.sql.generate import literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def steps_of(rows: pa.Table, judgement: Judgement) -> list[tuple[int, int]]:
    """From which position on rows met which bound."""
    if not rows.num_rows:
        return []
    bounds = judgement.bounds
    first = np.concatenate([[0], np.flatnonzero(bounds[1:] != bounds[:-1]) + 1])
    return list(zip(rows[POSITION].to_numpy()[first].tolist(), bounds[first].tolist(), strict=True))


def with_met(rows: DataFrame, steps: Mapping[str, Sequence[tuple[int, int]]]) -> DataFrame:
    """The rows with the bound that each has met, by its writer and position."""
    known = {writer: found for writer, found in steps.items() if found}
    if len(known) > FEW:
        return _met_by_many(rows, known)
    texts = {}
    for writer, found in known.items():
        texts[writer] = passed(found[0][1], POSITION)
        if len(found) > 1:
            texts[writer] = value_at([bound for _, bound in found], [at for at, _ in found[1:]])
    cases = " ".join(f"WHEN {literal(writer)} THEN {text}" for writer, text in texts.items())
    met = f"CASE {WRITER} {cases} END" if len(texts) > 1 else next(iter(texts.values()), f"{BEGINNING}L")
    return rows.selectExpr("*", f"{met} AS {MET}")


def _met_by_many(rows: DataFrame, steps: Mapping[str, Sequence[tuple[int, int]]]) -> DataFrame:
    """As above with a table of the writers: a literal is searched from its beginning for every row."""
    numbers = pa.list_(pa.int64())
    columns = {
        "__at": pa.array([[at for at, _ in found[1:]] for found in steps.values()], numbers),
        "__bounds": pa.array([[bound for _, bound in found] for found in steps.values()], numbers),
    }
    met = f"get(__bounds, {reached('__at', max(map(len, steps.values())))}) AS {MET}"
    return joined(rows, steps, columns).selectExpr(*map(quoted, rows.columns), met)
