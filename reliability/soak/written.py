"""The output of the query of a soak, read with Arrow alone, and where it differs from the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import rowtime as rt
from reliability.soak.answer import Found

SHOWN = 3
MICROSECONDS = "timestamp[us, tz=UTC]"


def written(folder: Path, query: rt.Query) -> Found:
    """Return the rows of the outputs, those that the gates keep as refused, and the ledger."""
    home = folder / "home" / "logs" / "pairs"
    found = Found(
        groups=Counter(_rows(folder / "out" / "groups", "rowtime", "item", "c", "total")),
        pairs=Counter(_rows(home, "number", "item", "paid")),
        late=Counter(_rows(folder / "out" / "late", "number", "at")),
        gates={gate: {name: n for name, n in counts.items() if n} for gate, counts in query.ledger.items()},
    )
    kept = sum(1 for path in query.rejected("sorted_orders") for _ in _table(path))
    if kept != sum(found.late.values()):
        found.gates["the ledger of sorted_orders"] = {"kept": kept}
    return found


def _rows(folder: Path, *columns: str) -> Iterator[tuple[Any, ...]]:
    for path in sorted(folder.rglob("[pr]*.parquet")):
        yield from (tuple(row[name] for name in columns) for row in _table(path))


def _table(path: Path) -> list[dict[str, Any]]:
    table = pq.read_table(path, partitioning=None)
    for number, field in enumerate(table.schema):
        if str(field.type).startswith("timestamp"):
            table = table.set_column(number, field.name, table[field.name].cast("timestamp[us]").cast("int64"))
    return table.to_pylist()


def differences(wanted: Found, found: Found) -> list[str]:
    """Return one line for each output that differs."""
    wrong = []
    for name in ("groups", "pairs", "late"):
        missing, extra = getattr(wanted, name) - getattr(found, name), getattr(found, name) - getattr(wanted, name)
        if missing or extra:
            first = [*missing.most_common(SHOWN), *extra.most_common(SHOWN)]
            wrong.append(f"{name}: {missing.total()} rows missing, {extra.total()} too many: {first}")
    if dict(wanted.gates) != dict(found.gates):
        wrong.append(f"the ledger is {found.gates}, not {wanted.gates}")
    wrong += [f"the ledger of {gate} does not add up: {counts}" for gate, counts in found.gates.items() if _off(counts)]
    return wrong


def _off(counts: Mapping[str, int]) -> bool:
    return counts.get("in", 0) != sum(n for name, n in counts.items() if name != "in")
