"""Random queries over two streams, each with a batch query of Spark that has the same rows.

Streams ``a`` and ``b`` have columns k (text), v (integers), d (sums of halves and quarters, which are exact as DOUBLE)
and f (booleans), all with NULLs; no two rows of the two streams have the same rowtime.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

Texts = tuple[str, str]
"""The streaming query and the batch query, which may still say STREAM."""

SIZES: Final = (60, 300, 900, 3600)
KEYS: Final = ("", "k", "f", "v % 3", "COALESCE(k, '-')")
PLAIN_KEYS: Final = ("", "k", "f")
CONDITIONS: Final = (
    "v > 0", "k = 'x'", "k IS NOT NULL", "f", "NOT f", "v IS NULL OR d > 0", "v BETWEEN -2 AND 3",
    "k IN ('x', 'y') AND v <> 0",
)  # fmt: skip
AGGREGATES: Final = (
    "COUNT(*)", "COUNT(v)", "SUM(v)", "AVG(v)", "MIN(d)", "MAX(k)", "STDDEV(v)", "VAR_POP(v)", "COUNT(DISTINCT v)",
    "BOOL_OR(f)", "SUM(v) FILTER (WHERE f)", "MAX_BY(k, ROWTIME)", "COUNT_IF(v > 0)", "PERCENTILE(v, 0.5)",
    "SUM(d * 2)", "MIN(v) + MAX(v)", "COLLECT_LIST(v)",
)  # fmt: skip
OVER_ROWS: Final = (
    "COUNT(*)", "COUNT(v)", "SUM(v)", "AVG(d)", "MIN(v)", "MAX(k)", "STDDEV(v)", "VARIANCE(v)", "BOOL_AND(f)",
    "FIRST_VALUE(k)", "FIRST_VALUE(v) IGNORE NULLS", "LAST_VALUE(v) IGNORE NULLS", "NTH_VALUE(k, 2)",
    "SUM(v) FILTER (WHERE f)",
)  # fmt: skip
PARTITIONS: Final = (
    "", "PARTITION BY k ", "PARTITION BY k, f ", "PARTITION BY date_trunc('HOUR', ROWTIME), k ",
)  # fmt: skip
IN_BATCH: Final = {
    "SELECT STREAM": "SELECT",
    # A stream numbers its rows as BIGINT, Spark as INT; no two rows are equal in the order.
    "ROW_NUMBER()": "COUNT(*)",
    # Spark collects in any order, a stream in its own.
    "COLLECT_LIST(v)": "TRANSFORM(ARRAY_SORT(COLLECT_LIST(STRUCT(ROWTIME, v)) FILTER (WHERE v IS NOT NULL)), e -> e.v)",
}


@dataclass(frozen=True)
class Case:
    """One random query, and the batch query that has the same rows in any order."""

    kind: str
    streaming: str
    batch: str


@dataclass(frozen=True)
class Groups:
    """The clauses of a query of groups besides its window."""

    key: str
    values: str
    where: str
    having: str

    def query(self, columns: str, source: str, window: str) -> str:
        """The query of these groups, whose window gives ``columns``."""
        columns, window = (f"{columns}, {self.key} AS key", f"{window}, {self.key}") if self.key else (columns, window)
        return f"SELECT STREAM {columns}, {self.values} FROM {source}{self.where} GROUP BY {window}{self.having}"


def seconds(number: int) -> str:
    return f"INTERVAL '{number}' SECOND"


def where(chance: Random) -> str:
    return f" WHERE {chance.choice(CONDITIONS)}" if chance.random() < 0.4 else ""


def aggregates(chance: Random) -> str:
    chosen = chance.sample(AGGREGATES, chance.randint(1, 3))
    return ", ".join(f"{value} AS g{number}" for number, value in enumerate(chosen))


def groups(chance: Random, keys: tuple[str, ...] = KEYS) -> Groups:
    having = chance.choice(("", " HAVING COUNT(*) > 1", " HAVING MAX(v) > 0"))
    return Groups(chance.choice(keys), aggregates(chance), where(chance), having)


def batch_window(size: int, slide: int, offset: int = 0) -> str:
    return f"window(ROWTIME, '{size} seconds', '{slide} seconds', '{offset} seconds')"


# -- groups -----------------------------------------------------------------------------


def calendar_groups(chance: Random) -> Texts:
    period = f"date_trunc('{chance.choice(('MINUTE', 'HOUR', 'DAY'))}', a.ROWTIME)"
    text = groups(chance).query(f"{period} AS s", "a", period)
    return text, text


def tumble(chance: Random) -> Texts:
    size, offset, some = chance.choice(SIZES), chance.choice((0, 17)), groups(chance)
    window = f"a.ROWTIME, {seconds(size)}, {seconds(offset)}"
    streaming = some.query(f"TUMBLE_START({window}) AS s", "a", f"TUMBLE({window})")
    return streaming, some.query("window.start AS s", "a", batch_window(size, size, offset))


def _hop(chance: Random) -> tuple[int, int, int]:
    size = chance.choice(SIZES)
    return size, chance.choice((size // 2, size // 3, size)), chance.choice((0, 13))


def hop(chance: Random) -> Texts:
    (size, slide, offset), some = _hop(chance), groups(chance)
    window = f"a.ROWTIME, {seconds(slide)}, {seconds(size)}, {seconds(offset)}"
    streaming = some.query(f"HOP_START({window}) AS s, HOP_END({window}) AS e", "a", f"HOP({window})")
    return streaming, some.query("window.start AS s, window.end AS e", "a", batch_window(size, slide, offset))


def hop_rows(chance: Random) -> Texts:
    (size, slide, offset), some = _hop(chance), groups(chance)
    source = f"TABLE(HOP(TABLE a, DESCRIPTOR(ROWTIME), {seconds(slide)}, {seconds(size)}, {seconds(offset)})) AS a"
    streaming = some.query("window_start AS s, window_end AS e", source, "window_start, window_end")
    return streaming, some.query("window.start AS s, window.end AS e", "a", batch_window(size, slide, offset))


def cumulate(chance: Random) -> Texts:
    size, some = chance.choice(SIZES), groups(chance)
    step = size // 3
    source = f"TABLE(CUMULATE(TABLE a, DESCRIPTOR(ROWTIME), {seconds(step)}, {seconds(size)})) AS a"
    streaming = some.query("window_start AS s, window_end AS e", source, "window_start, window_end")
    starts = f"(SELECT *, {batch_window(size, size)}.start AS ws FROM a)"
    ends = f"(SELECT *, ws + make_dt_interval(0, 0, 0, n * {step}) AS we FROM {starts} LATERAL VIEW "
    rows = f"(SELECT * FROM {ends}explode(sequence(1, 3)) AS n) WHERE ROWTIME < we) AS a"
    return streaming, some.query("ws AS s, we AS e", rows, "ws, we")


def session(chance: Random) -> Texts:
    gap, some = chance.choice((33, 90, 200)), groups(chance, PLAIN_KEYS)
    window = f"a.ROWTIME, {seconds(gap)}"
    hour = f"date_trunc('HOUR', SESSION_END({window}))"
    order = chance.choice(("", " ORDER BY ROWTIME, s DESC", f" ORDER BY {hour}, s DESC"))
    streaming = some.query(f"SESSION_START({window}) AS s, SESSION_END({window}) AS e", "a", f"SESSION({window})")
    columns = "session_window.start AS s, session_window.end AS e"
    return streaming + order, some.query(columns, "a", f"session_window(ROWTIME, '{gap} seconds')")


def groups_of_groups(chance: Random) -> Texts:
    small = chance.choice((60, 300))
    large = small * chance.choice((2, 6))
    values, inner = "MAX(c) AS mc, SUM(s) AS ss, COUNT(*) AS n", "k, COUNT(*) AS c, SUM(v) AS s"
    source = f"TABLE(TUMBLE(TABLE a, DESCRIPTOR(ROWTIME), {seconds(small)})) AS t"
    below = f"(SELECT STREAM window_start, {inner} FROM {source} GROUP BY window_start, window_end, k) AS x"
    step = f"STEP(window_start BY {seconds(large)})"
    streaming = f"SELECT STREAM {step} AS st, {values} FROM {below} GROUP BY {step}"
    below = f"(SELECT window.start AS ws, {inner} FROM a GROUP BY {batch_window(small, small)}, k) AS x"
    batch = f"SELECT window.start AS st, {values} FROM {below} GROUP BY window(ws, '{large} seconds')"
    return streaming, batch


def groups_of_a_union(chance: Random) -> Texts:
    hour, columns = "date_trunc('HOUR', u.ROWTIME)", "SELECT STREAM k, v, d, f"
    source = f"({columns} FROM a{where(chance)} UNION ALL {columns} FROM b) AS u"
    streaming = f"SELECT STREAM {hour} AS h, k, {aggregates(chance)} FROM {source} GROUP BY {hour}, k"
    return streaming, streaming.replace(columns, "SELECT ROWTIME, k, v, d, f")


def distinct(chance: Random) -> Texts:
    text = f"SELECT STREAM DISTINCT date_trunc('HOUR', a.ROWTIME) AS h, k, f FROM a{where(chance)}"
    return text, text


# -- rows and the rows before them ------------------------------------------------------


def _frame(chance: Random) -> str:
    if chance.random() < 0.5:
        near = chance.choice((0, 0, 1, 2))
        far, unit = chance.choice(("UNBOUNDED", near, near + 1, near + 5)), "ROWS"
        end = f"{near} PRECEDING"
    else:
        near = chance.choice((0, 0, 60, 300))
        far, unit = seconds(near + chance.choice((10, 500, 4000))), "RANGE"
        end = f"{seconds(near)} PRECEDING"
    return f"{unit} BETWEEN {far} PRECEDING AND {end if near else 'CURRENT ROW'}"


def frames(chance: Random) -> Texts:
    partition = chance.choice(PARTITIONS)
    called = [
        f"{chance.choice(OVER_ROWS)} OVER ({partition}ORDER BY ROWTIME {_frame(chance)}) AS o{number}"
        for number in range(chance.randint(1, 4))
    ]
    if chance.random() < 0.3:
        called.append(f"LAG(v, {chance.randint(1, 3)}, -99) OVER ({partition}ORDER BY ROWTIME) AS lg")
    if chance.random() < 0.3:
        called.append(f"ROW_NUMBER() OVER ({partition}ORDER BY ROWTIME) AS rn")
    text = f"SELECT STREAM k, v, {', '.join(called)} FROM a{where(chance)}"
    return text, text


def filtered_frames(chance: Random) -> Texts:
    text = f"SELECT STREAM k, o0 FROM ({frames(chance)[0]}) AS x WHERE o0 IS NOT NULL"
    return text, text


def first_rows(chance: Random) -> Texts:
    size, key = chance.choice((300, 3600)), chance.choice(("", ", k"))
    order = chance.choice(("v DESC, d", "k, v DESC NULLS LAST", "d NULLS LAST, v"))
    outer, number = "SELECT STREAM k, v, d, rn FROM (SELECT STREAM k, v, d, ", "ROW_NUMBER() OVER (PARTITION BY "
    source = f"TABLE(TUMBLE(TABLE a, DESCRIPTOR(ROWTIME), {seconds(size)}))"
    end = ") AS x WHERE rn <= 3"
    streaming = f"{outer}{number}window_start, window_end{key} ORDER BY {order}) AS rn FROM {source}{end}"
    # Rows that are equal in the order stay in the order of arrival.
    batch = f"{outer}{number}{batch_window(size, size)}{key} ORDER BY {order}, ROWTIME) AS rn FROM a{end}"
    return streaming, batch


# -- joins ------------------------------------------------------------------------------

JOINS: Final = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
MATCHES: Final = ("", " AND a.v > b.v", " AND (a.f OR b.f)", " AND a.v = b.v")
JOINED: Final = "SELECT STREAM a.k, a.v, b.v AS w, b.d FROM a"


def time_join(chance: Random) -> Texts:
    low = chance.choice((0, -300, -60, 30))
    high = low + chance.choice((0, 200, 700))
    first, last = (f"a.ROWTIME {'-' if at < 0 else '+'} {seconds(abs(at))}" for at in (low, high))
    on = f"a.k = b.k AND b.ROWTIME BETWEEN {first} AND {last}{chance.choice(MATCHES)}"
    text = f"{JOINED} {chance.choice(JOINS)} b ON {on}"
    return text, text


def window_join(chance: Random) -> Texts:
    left, right = chance.choice((0, 60, 400)), chance.choice((0, 120, 900))
    join, on = chance.choice(JOINS), f"a.k = b.k{chance.choice(MATCHES)}"
    windows = f"OVER (RANGE {seconds(left)} PRECEDING) {join} b OVER (RANGE {seconds(right)} PRECEDING)"
    near = f"b.ROWTIME - a.ROWTIME <= {seconds(left)} AND a.ROWTIME - b.ROWTIME <= {seconds(right)}"
    return f"{JOINED} {windows} ON {on}", f"{JOINED} {join} b ON {on} AND {near}"


def as_of_join(chance: Random) -> Texts:
    join = chance.choice(("JOIN", "LEFT JOIN"))
    last = "ROW_NUMBER() OVER (PARTITION BY a.ROWTIME ORDER BY b.ROWTIME DESC) AS rn"
    matches = f"SELECT a.k, a.v, b.v AS w, b.d, {last} FROM a {join} b ON a.k = b.k AND b.ROWTIME <= a.ROWTIME"
    streaming = f"{JOINED} {join} b FOR SYSTEM_TIME AS OF a.ROWTIME ON a.k = b.k"
    return streaming, f"SELECT k, v, w, d FROM ({matches}) WHERE rn = 1"


def joined_groups(chance: Random) -> Texts:
    period, join = chance.choice(("MINUTE", "HOUR")), chance.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
    counted = [
        f"(SELECT STREAM date_trunc('{period}', {name}.ROWTIME) AS m, k, COUNT(*) AS c FROM {name} "
        f"GROUP BY date_trunc('{period}', {name}.ROWTIME), k)"
        for name in ("a", "b")
    ]
    text = f"SELECT STREAM x.m, x.k, x.c, y.c AS d FROM {counted[0]} AS x {join} {counted[1]} AS y ON x.k = y.k"
    return text, f"{text} AND x.m = y.m"


def groups_of_a_join(chance: Random) -> Texts:
    before, after = chance.choice((60, 200)), chance.choice((0, 100))
    on = f"a.k = b.k AND b.ROWTIME BETWEEN a.ROWTIME - {seconds(before)} AND a.ROWTIME + {seconds(after)}"
    rows = f"COUNT(*) AS c, SUM(b.v) AS s FROM a JOIN b ON {on} GROUP BY"
    hour, later = "date_trunc('HOUR', ROWTIME)", "date_trunc('HOUR', greatest(a.ROWTIME, b.ROWTIME))"
    return f"SELECT STREAM {hour} AS h, {rows} {hour}", f"SELECT {later} AS h, {rows} {later}"


KINDS: Final[tuple[Callable[[Random], Texts], ...]] = (
    calendar_groups, tumble, hop, hop_rows, cumulate, session, groups_of_groups, groups_of_a_union, distinct, frames,
    filtered_frames, first_rows, time_join, window_join, as_of_join, joined_groups, groups_of_a_join,
)  # fmt: skip


def in_batch(text: str) -> str:
    for streaming, batch in IN_BATCH.items():
        text = text.replace(streaming, batch)
    return text


def drawn(chance: Random, count: int) -> list[Case]:
    """The given number of queries; each kind comes once before any comes again."""
    rounds = range(-(-count // len(KINDS)))
    kinds = [kind for _ in rounds for kind in chance.sample(KINDS, len(KINDS))][:count]
    texts = [(kind.__name__, *kind(chance)) for kind in kinds]
    return [Case(name, streaming, in_batch(batch)) for name, streaming, batch in texts]
