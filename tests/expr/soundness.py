# ruff: noqa: E501 - tables of columns
"""Searches for counter-examples: Spark computes expressions over ordered columns of generated values.

Every column is sorted as declared, and has the edge values and random values of its kind. An expression with a proved
order is computed for all rows. Two neighbours in the wrong order are a counter-example, and so is a NULL or NaN if the
order is monotonic and not constant.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rowtime.core.time import MAX_MICROS, MIN_MICROS
from rowtime.expr.order import Order
from rowtime.plan.check import facts_of, prove_text
from rowtime.sql.generate import to_spark
from rowtime.sql.script import parse_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EPOCH = dt.date(1970, 1, 1)
DAY = 86_400_000_000
COLUMNS = {
    "i": "INT ASCENDING", "u": "INT STRICTLY ASCENDING", "l": "BIGINT ASCENDING",
    "p": "INT ASCENDING CHECK (p > 0)", "n": "INT ASCENDING CHECK (n < 0)", "z": "INT ASCENDING CHECK (z >= 0)",
    "k": "INT ASCENDING CHECK (k BETWEEN 1 AND 9000)", "d": "INT DESCENDING", "s": "INT STRICTLY DESCENDING",
    "e": "INT DESCENDING CHECK (e >= 0)", "c": "DECIMAL(18, 4) ASCENDING", "q": "DECIMAL(18, 4) ASCENDING CHECK (q > 0)",
    "f": "DOUBLE ASCENDING", "g": "DOUBLE STRICTLY ASCENDING", "h": "DOUBLE ASCENDING CHECK (h > 0)",
    "w": "DOUBLE DESCENDING CHECK (w >= 0)", "day": "DATE ASCENDING", "t": "TIMESTAMP ASCENDING",
    "ts": "TIMESTAMP STRICTLY ASCENDING", "back": "TIMESTAMP DESCENDING", "tag": "STRING ASCENDING",
    "x": "INT", "xt": "TIMESTAMP", "xf": "DOUBLE", "yes": "BOOLEAN",
}  # fmt: skip


def rows(seed: int, count: int, *, wide: bool) -> pa.Table:
    """Columns of ``count`` values; ``wide``: up to the limits of their types, so that sums overflow."""
    chance = random.Random(seed)
    reach = 2**31 - 1 if wide else 1_000
    longs = 2**63 - 1 if wide else 10**9

    def whole(low: int, high: int, edges: Iterable[int]) -> Callable[[], int]:
        inside = [edge for edge in edges if low <= edge <= high]
        return lambda: chance.choice(inside) if inside and chance.random() < 0.3 else chance.randint(low, high)

    near = (-10, -1, 0, 1, 2, 9, 10, 99, 100, reach, -reach)
    real = (0.0, -0.0, 0.1, -0.1, 0.5, 1e-300, 5e-324, 1.0, -1.0, 2.5, 1e15 + 0.3)
    far = (*real, 1e308, -1e308, math.inf, -math.inf) if wide else real
    days = (-719162, -1, 0, 11016, 18321, 18322, 19052, 19053, 19082, 2932896)  # ends of months, leap days, 1 and 9999
    micros = [day * DAY + shift for day in days for shift in (0, 1, DAY - 1, 23 * DAY // 24)]

    def double() -> float:
        return chance.choice(far) if chance.random() < 0.3 else chance.uniform(-1e6, 1e6)

    def instant() -> int:
        at = chance.choice(micros) if chance.random() < 0.5 else chance.randint(MIN_MICROS, MAX_MICROS)
        return min(max(at if wide else at % (400 * 365 * DAY), MIN_MICROS), MAX_MICROS)

    def cents() -> Decimal:
        return Decimal(chance.choice(near) if chance.random() < 0.2 else chance.randint(-(10**9), 10**9)) / 10_000

    def text() -> str:
        return "".join(chance.choice("abzAZ09 é€𝄞") for _ in range(chance.randint(0, 5)))

    made: dict[str, list[Any]] = {
        "i": _drawn(whole(-reach, reach, near), count), "u": _distinct(whole(-reach * 3, reach * 3, near), count, wide=wide),
        "l": _drawn(whole(-longs, longs, near), count), "p": _drawn(whole(1, reach, near), count),
        "n": _drawn(whole(-reach, -1, near), count), "z": _drawn(whole(0, reach, near), count),
        "k": _drawn(whole(1, 9000, (1, 99, 2024, 9000)), count), "d": _drawn(whole(-reach, reach, near), count),
        "s": _distinct(whole(-reach * 3, reach * 3, near), count, wide=wide), "e": _drawn(whole(0, reach, near), count),
        "c": _drawn(cents, count), "q": [max(abs(v), Decimal("0.0001")) for v in _drawn(cents, count)],
        "f": _drawn(double, count), "g": _distinct(double, count, wide=wide), "h": [abs(v) or 1.0 for v in _drawn(double, count)],
        "w": [abs(v) for v in _drawn(double, count)], "day": _drawn(lambda: instant() // DAY, count),
        "t": _drawn(instant, count), "ts": _distinct(instant, count, wide=wide), "back": _drawn(instant, count),
        "tag": _drawn(text, count),
    }  # fmt: skip
    for name, values in made.items():
        values.sort(key=(lambda v: v.encode()) if name == "tag" else None, reverse="DESC" in COLUMNS[name])
    made["ROWTIME"] = sorted(_drawn(instant, count))
    made["x"], made["xt"] = _drawn(whole(-reach, reach, near), count), _drawn(instant, count)
    made["xf"], made["yes"] = _drawn(double, count), _drawn(lambda: chance.random() < 0.5, count)
    return _table(made)


def _drawn(draw: Callable[[], Any], count: int) -> list[Any]:
    return [draw() for _ in range(count)]


def _distinct(draw: Callable[[], Any], count: int, *, wide: bool) -> list[Any]:
    found: dict[Any, None] = {}
    top = 2**31 - 1
    while len(found) < count:
        value = draw()
        found[max(-top, min(top, value)) if wide and isinstance(value, int) and abs(value) < 2**40 else value] = None
    return list(found)


def _table(made: dict[str, list[Any]]) -> pa.Table:
    kinds = {"INT": pa.int32(), "BIGINT": pa.int64(), "DECIMAL(18,": pa.decimal128(18, 4), "DOUBLE": pa.float64(),
             "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us", "UTC"), "STRING": pa.string(), "BOOLEAN": pa.bool_()}  # fmt: skip
    columns = {}
    for name, values in made.items():
        kind = kinds[COLUMNS.get(name, "TIMESTAMP").split()[0]]
        columns[name] = pa.array(values, pa.int32()).cast(kind) if kind == pa.date32() else pa.array(values, kind)
    return pa.table({"__n": pa.array(range(len(made["i"]))), **columns})


FACTS = facts_of(COLUMNS)


class Search:
    """Computes expressions over generated rows and looks for neighbours in the wrong order."""

    def __init__(self, spark: SparkSession, seed: int, count: int, *, wide: bool) -> None:
        self._spark = spark
        self._rows = spark.createDataFrame(rows(seed, count, wide=wide)).coalesce(1).cache()
        self.pairs = 0
        self.errors: list[str] = []

    def broken(self, expressions: Sequence[str]) -> list[str]:
        """A line for each expression whose proved order does not hold."""
        proved = [(text, prove_text(text, FACTS)) for text in expressions]
        moving = [(text, proof.order) for text, proof in proved if proof.order.monotonic]
        found = []
        for text, order, values in self._computed(moving):
            self.pairs += len(values) - 1
            found.extend(_counter_example(text, order, values))
        return found

    def _computed(self, wanted: Sequence[tuple[str, Order]]) -> Iterable[tuple[str, Order, list[Any]]]:
        """The values of each expression; an expression that fails for some row (an overflow, for example) has no order."""
        if not wanted:
            return
        items = [f"({to_spark(parse_expression(text))}) AS v{n}" for n, (text, _) in enumerate(wanted)]
        try:
            table = self._rows.selectExpr("__n", *items).toArrow().sort_by("__n")
        except Exception as error:  # noqa: BLE001 - Spark has many; only whether it fails matters
            if len(wanted) == 1:
                self.errors.append(f"{wanted[0][0]}: {str(error).splitlines()[0][:160]}")
                return
            half = len(wanted) // 2
            yield from self._computed(wanted[:half])
            yield from self._computed(wanted[half:])
            return
        for n, (text, order) in enumerate(wanted):
            yield text, order, _plain(table[f"v{n}"])


def _plain(values: pa.ChunkedArray) -> list[Any]:
    """Python values; times as numbers, because Python has no years after 9999."""
    if pa.types.is_date(values.type):
        values = values.cast(pa.int32())
    elif pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
        values = values.cast(pa.int64())
    found: list[Any] = values.to_pylist()
    return found


def _counter_example(text: str, order: Order, values: list[Any]) -> Iterable[str]:
    if order is Order.CONSTANT:
        if len({repr(value) for value in values}) > 1:
            yield f"{text} is called constant, but takes {values[0]!r} and others"
        return
    bad = next((v for v in values if v is None or v != v), 0)  # noqa: PLR0124 - NaN
    if bad is None or bad != bad:  # noqa: PLR0124
        yield f"{text} is called {order.value}, but is {bad} for some row"
        return
    keys = [value.encode() if isinstance(value, str) else value for value in values]
    for before, after in zip(keys, keys[1:], strict=False):
        low, high = (before, after) if order.direction > 0 else (after, before)
        if low > high or (order.strict and low == high):
            yield f"{text} is called {order.value}, but {after!r} follows {before!r}"
            return
