"""What does not fit in memory goes to a folder that is removed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rowtime.frames import queries
from rowtime.frames.queries import all_of

if TYPE_CHECKING:
    import pytest

ROWS = 2_000_000


def test_a_query_that_does_not_fit_in_memory_is_computed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(queries.SETTINGS, "memory_limit", "60MB")
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    queries.close()
    used: set[Path] = set()

    numbers = np.random.default_rng(7).permutation(ROWS)
    rows = all_of(pa.table({"c0": pa.array(numbers), "c1": pa.array(numbers.astype(str))}))
    try:
        ordered = rows.over(f"SELECT * FROM {rows} ORDER BY c1 DESC, c0").rows()
        used |= {*Path(queries.spilled()).glob("*")}
    finally:
        queries.close()
    assert ordered.num_rows == ROWS
    assert ordered["c1"][0].as_py() == "999999"
    assert used, "it has used the folder"
    assert not Path(queries.spilled()).exists()
