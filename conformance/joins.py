"""Joins with the other stream and with a table."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from conformance.views import STREAM, TABLE, View, projected, seconds


def _sides(chance: Random, given: View) -> tuple[Mapping[str, str], str]:
    """Return what a join of a view with the other stream selects, and its equality."""
    left = chance.sample([*given.columns], chance.randint(1, min(3, len(given.columns))))
    right = chance.sample([*STREAM], 2)
    items = {f"l{number}": f"x.{name}" for number, name in enumerate(left)}
    items |= {f"r{number}": f"y.{name}" for number, name in enumerate(right)}
    text = [name for name, kind in given.columns.items() if kind == "text"]
    more = chance.choice(("", " AND y.f", " AND y.v > 0"))
    return items, (f"x.{chance.choice(text)} = y.k" if text else "y.k = 'x'") + more


def _timed(given: View, items: Mapping[str, str]) -> frozenset[str]:
    return frozenset(name for name, text in items.items() if text.removeprefix("x.") in given.timed)


def _kinds(given: View, items: Mapping[str, str], right: Mapping[str, str]) -> dict[str, str]:
    return {
        name: (given.columns if text.startswith("x.") else right)[text.split(".")[1]] for name, text in items.items()
    }


def time_join(chance: Random, given: View, name: str) -> View:
    items, on = _sides(chance, given)
    low = chance.choice((0, -300, -60, 30))
    high = low + chance.choice((0, 200, 700))
    first, last = (f"x.ROWTIME {'-' if at < 0 else '+'} {seconds(abs(at))}" for at in (low, high))
    join = chance.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
    if "SEMI" in join or "ANTI" in join:
        items = {one: text for one, text in items.items() if text.startswith("x.")}
    on = f"{on} AND y.ROWTIME BETWEEN {first} AND {last}"
    listed = ", ".join(f"{text} AS {one}" for one, text in items.items())
    rest = f"{listed} FROM {given.name} AS x {join} b AS y ON {on}"
    alone = f"x.rowtime + {seconds(max(0, high))}"
    at = f"CASE WHEN y.rowtime IS NULL THEN {alone} WHEN x.rowtime IS NULL THEN y.rowtime + {seconds(max(0, -low))} "
    at += "ELSE greatest(x.rowtime, y.rowtime) END"
    if "SEMI" in join or "ANTI" in join:
        at = alone
    theirs = f"SELECT {at} AS rowtime, {rest.replace('LEFT SEMI', 'SEMI').replace('LEFT ANTI', 'ANTI')}"
    return View(name, _kinds(given, items, STREAM), f"SELECT STREAM {rest}", theirs, f"time {join.lower()}",
                timed=_timed(given, items))  # fmt: skip


def window_join(chance: Random, given: View, name: str) -> View:
    items, on = _sides(chance, given)
    left, right = chance.choice((0, 60, 400)), chance.choice((0, 120, 900))
    join = chance.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    listed = ", ".join(f"{text} AS {one}" for one, text in items.items())
    ours = (
        f"SELECT STREAM {listed} FROM {given.name} OVER (RANGE {seconds(left)} PRECEDING) AS x {join} "
        f"b OVER (RANGE {seconds(right)} PRECEDING) AS y ON {on}"
    )
    near = f"y.rowtime - x.rowtime <= {seconds(left)} AND x.rowtime - y.rowtime <= {seconds(right)}"
    at = (
        f"CASE WHEN y.rowtime IS NULL THEN x.rowtime + {seconds(left)} WHEN x.rowtime IS NULL THEN y.rowtime + "
        f"{seconds(right)} ELSE greatest(x.rowtime, y.rowtime) END"
    )
    theirs = f"SELECT {at} AS rowtime, {listed} FROM {given.name} AS x {join} b AS y ON {on} AND {near}"
    return View(name, _kinds(given, items, STREAM), ours, theirs, f"window {join.lower()}", timed=_timed(given, items))


def as_of_join(chance: Random, given: View, name: str) -> View:
    items, on = _sides(chance, given)
    on = on.split(" AND ", 1)[0]
    if not on.startswith("x."):
        return projected(chance, given, name)
    join = chance.choice(("JOIN", "LEFT JOIN"))
    listed = ", ".join(f"{text} AS {one}" for one, text in items.items())
    ours = f"SELECT STREAM {listed} FROM {given.name} AS x {join} b FOR SYSTEM_TIME AS OF x.ROWTIME AS y ON {on}"
    theirs = f"SELECT x.rowtime, {listed} FROM {given.name} AS x ASOF {join} b AS y ON {on} AND x.rowtime >= y.rowtime"
    return View(name, _kinds(given, items, STREAM), ours, theirs, f"as-of {join.lower()}", unique=given.unique,
                timed=_timed(given, items))  # fmt: skip


def table_join(chance: Random, given: View, name: str) -> View:
    text = [one for one, kind in given.columns.items() if kind == "text"]
    if not text:
        return projected(chance, given, name)
    join = chance.choice(("JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
    kept = chance.sample([*given.columns], chance.randint(1, min(4, len(given.columns))))
    items = {f"l{number}": f"x.{one}" for number, one in enumerate(kept)}
    if join in ("JOIN", "LEFT JOIN"):
        items |= {"r0": "y.name", "r1": "y.rank"}
    listed = ", ".join(f"{text} AS {one}" for one, text in items.items())
    rest = f"{listed} FROM {given.name} AS x {join} t AS y ON x.{chance.choice(text)} = y.k"
    theirs = f"SELECT x.rowtime, {rest.replace('LEFT SEMI', 'SEMI').replace('LEFT ANTI', 'ANTI')}"
    return View(name, _kinds(given, items, TABLE), f"SELECT STREAM {rest}", theirs, f"table {join.lower()}",
                unique=given.unique and join not in ("JOIN", "LEFT JOIN"), timed=_timed(given, items))  # fmt: skip
