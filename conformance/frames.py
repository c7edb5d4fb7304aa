"""Frames over the rows before, and the first rows of windows."""

from __future__ import annotations

from random import Random

from conformance.expressions import KINDS, over_call
from conformance.views import View, in_time, projected, seconds


def over(chance: Random, given: View, name: str) -> View:
    if not given.unique and not given.keys:
        return projected(chance, given, name)
    by = _partition(chance, given)
    kept = chance.sample([*given.columns], chance.randint(1, min(3, len(given.columns))))
    items, columns, timed = [*kept], {one: given.columns[one] for one in kept}, {*given.timed}
    for number in range(chance.randint(1, 4)):
        kind = chance.choice(KINDS)
        called = over_call(chance, given.columns, kind)
        columns[f"{name}o{number}"] = kind
        timed |= {f"{name}o{number}"} if in_time(called, given) else set()
        items.append(f"{called} OVER ({by}ORDER BY ROWTIME {_frame(chance)}) AS {name}o{number}")
    if chance.random() < 0.3:
        column = chance.choice([*given.columns])
        columns[f"{name}l"] = given.columns[column]
        timed |= {f"{name}l"} if column in given.timed else set()
        items.append(f"LAG({column}, {chance.randint(1, 3)}) OVER ({by}ORDER BY ROWTIME) AS {name}l")
    if chance.random() < 0.3:
        columns[f"{name}n"] = "int"
        timed |= {f"{name}n"}
        items.append(f"ROW_NUMBER() OVER ({by}ORDER BY ROWTIME) AS {name}n")
    rest = f"{', '.join(items)} FROM {given.name}"
    unbounded = " WITH UNBOUNDED STATE"
    return View(
        name, columns, f"SELECT STREAM {rest}{unbounded}", f"SELECT rowtime, {rest}", "over", unique=given.unique,
        timed=frozenset(timed),
    )  # fmt: skip


def _partition(chance: Random, given: View) -> str:
    if given.keys:  # one row of a key at a time
        others = [key for key in given.keys if key not in given.timed]
        return f"PARTITION BY {', '.join(others)} " if others else ""
    keys = [name for name, kind in given.columns.items() if kind in ("text", "bool", "date")]
    found = chance.sample(keys, min(len(keys), chance.choice((0, 1, 1, 2))))
    return f"PARTITION BY {', '.join(found)} " if found else ""


def _frame(chance: Random) -> str:
    near = chance.choice((0, 0, 0, 1, 2))
    if chance.random() < 0.5:
        far = chance.choice(("UNBOUNDED", near, near + 1, near + 5))
        return f"ROWS BETWEEN {far} PRECEDING AND {f'{near} PRECEDING' if near else 'CURRENT ROW'}"
    far = seconds(60 * near + chance.choice((10, 500, 4000)))
    return f"RANGE BETWEEN {far} PRECEDING AND {f'{seconds(60 * near)} PRECEDING' if near else 'CURRENT ROW'}"


def first_rows(chance: Random, given: View, name: str) -> View:
    kept = chance.sample([*given.columns], min(len(given.columns), chance.randint(1, 4)))
    terms = [f"{one} {chance.choice(('ASC', 'DESC'))} NULLS LAST" for one in chance.sample(kept, min(2, len(kept)))]
    most = chance.randint(1, 3)
    if given.keys and given.size:
        both = given.keys[:2]
        others = [f"{key} NULLS LAST" for key in given.keys[2:]]
        by, names = ", ".join(both), [*both, *(one for one in kept if one not in both)]
        number = f"ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY {', '.join([*terms, *others])}) AS rn"
        ours = f"SELECT STREAM {', '.join(names)}, rn FROM (SELECT STREAM *, {number} FROM {given.name}) AS x"
        theirs = f"SELECT rowtime, {', '.join(names)}, rn FROM (SELECT *, {number} FROM {given.name})"
        rest = f" WHERE rn <= {most}"
        columns = {**{one: given.columns[one] for one in names}, "rn": "int"}
        return View(name, columns, ours + rest, theirs + rest, "first rows", timed=given.timed | {"rn"})
    if not given.unique:
        return projected(chance, given, name)
    size = chance.choice((300, 3600))
    micros = size * 1_000_000
    start = f"make_timestamp((epoch_us(rowtime) // {micros}) * {micros})"
    listed = ", ".join(kept)
    number = f"ROW_NUMBER() OVER (PARTITION BY {{by}} ORDER BY {', '.join(terms)}{{last}}) AS rn"
    ours = (
        f"SELECT STREAM {listed}, rn FROM (SELECT STREAM {listed}, "
        f"{number.format(by='window_start, window_end', last='')} FROM "
        f"TABLE(TUMBLE(TABLE {given.name}, DESCRIPTOR(ROWTIME), {seconds(size)}))) AS x WHERE rn <= {most}"
    )
    # Rows that the order leaves equal keep their order of arrival; the rowtime of a row is the end of its window.
    numbered = number.format(by="ws", last=", rowtime")
    theirs = (
        f"SELECT ws + {seconds(size)} AS rowtime, {listed}, rn FROM (SELECT *, {numbered} FROM ("
        f"SELECT *, {start} AS ws FROM {given.name})) WHERE rn <= {most}"
    )
    columns = {**{one: given.columns[one] for one in kept}, "rn": "int"}
    return View(name, columns, ours, theirs, "first rows", timed=given.timed)
