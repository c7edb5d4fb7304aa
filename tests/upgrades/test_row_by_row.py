"""Which changes of SQL need no state, and which do; without Spark."""

from __future__ import annotations

import json
from collections.abc import Collection

import pytest

from rowtime.core.errors import Refused
from rowtime.plan.program import Program, compile_script
from rowtime.plan.stored import FORMAT, StoredPlan
from rowtime.plan.upgrade import Upgrade, upgrade_of

HEAD = """CREATE STREAM s (k STRING, v BIGINT, w INT, ev TIMESTAMP);
CREATE STREAM raw (k STRING, v BIGINT) USING {format} OPTIONS (path 'raw'{options});
CREATE STREAM steps (k STRING, v BIGINT ASCENDING) USING json OPTIONS (path 'steps');
CREATE STREAM minutes (k STRING, c BIGINT) USING parquet OPTIONS (path 'minutes');
CREATE STREAM changes (k STRING, c BIGINT) USING jdbc
  OPTIONS (url 'jdbc:postgresql://h/d', dbtable 'c', mode 'changes');
CREATE TABLE names (k STRING, n STRING) USING csv OPTIONS (path 'names');
"""
SORTED = (
    "CREATE VIEW f AS SELECT STREAM {time} AS ROWTIME, k, v FROM s {where} ORDER BY {time} WITHIN INTERVAL '9' SECOND; "
)
RAW = "CREATE PUMP p AS INSERT INTO raw SELECT STREAM {what};"
MINUTES = (
    "CREATE PUMP p AS INSERT INTO minutes SELECT STREAM k, {what} FROM {of} AS x "
    "GROUP BY FLOOR(x.ROWTIME TO MINUTE), k{having};"
)


def raw(what: str) -> str:
    return RAW.format(what=what)


def ordered(where: str = "", time: str = "ev") -> str:
    return SORTED.format(where=where, time=time)


def minutes(what: str = "COUNT(*) AS c", having: str = "", of: str = "s") -> str:
    return MINUTES.format(what=what, having=having, of=of)


def compiled(sql: str, format_: str = "parquet", options: str = "") -> Program:
    program = compile_script(HEAD.format(format=format_, options=options) + sql)
    assert program.problems == ()
    return program


def upgraded(
    before: str,
    after: str,
    held: Collection[str] | None = None,
    formats: tuple[str, str] = ("parquet", "parquet"),
    options: tuple[str, str] = ("", ""),
) -> Upgrade:
    described = compiled(before, formats[0], options[0]).described()
    plan = StoredPlan.read(json.loads(json.dumps({"format": FORMAT, **described.as_json()})))
    found = upgrade_of(plan, compiled(after, formats[1], options[1]), held)
    assert found is not None
    return found


ACCEPTED: dict[str, tuple[str, str, str]] = {
    "a filter": (raw("k, v FROM s WHERE v > 3"), raw("k, v FROM s WHERE v > 5"), "p: select has changed"),
    "a filter where none was": (raw("k, v FROM s"), raw("k, v FROM s WHERE v > 5"), "p: select has changed"),
    "a filter of a view": (
        "CREATE VIEW f AS SELECT STREAM k, v FROM s WHERE v > 3; " + raw("k, v FROM f"),
        "CREATE VIEW f AS SELECT STREAM k, v FROM s; " + raw("k, v FROM f"),
        "f: select has changed",
    ),
    "a projection": (raw("k, v FROM s"), raw("upper(k), v + w FROM s"), "p: select has changed"),
    "a view between": (
        raw("k, v FROM s"),
        "CREATE VIEW f AS SELECT STREAM k, v FROM s WHERE v > 3; " + raw("k, v FROM f"),
        "p: select has changed",
    ),
    "a table that is joined": (
        raw("k, v FROM s"),
        raw("n, v FROM s JOIN names ON s.k = names.k"),
        "p: table join has changed",
    ),
    "a filter below a sort": (
        ordered("WHERE v > 3") + raw("k, v FROM f"),
        ordered("WHERE v > 5") + raw("k, v FROM f"),
        "f: select has changed",
    ),
    "a filter above a sort": (
        ordered() + raw("k, v FROM f"),
        ordered() + raw("upper(k), v FROM f WHERE v > 5"),
        "p: select has changed",
    ),
    "one side of a union": (
        raw("k, v FROM s WHERE v > 3 UNION ALL SELECT STREAM k, v FROM s WHERE v < 1"),
        raw("k, v FROM s WHERE v > 5 UNION ALL SELECT STREAM k, v FROM s WHERE v < 1"),
        "p: select has changed",
    ),
    "a filter above groups": (
        "CREATE VIEW g AS SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE), k; "
        + raw("k, c FROM g WHERE c > 3"),
        "CREATE VIEW g AS SELECT STREAM k, COUNT(*) AS c FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE), k; "
        + raw("k, c * 2 FROM g WHERE c > 5"),
        "p: select has changed",
    ),
    "HAVING": (minutes(), minutes(having=" HAVING COUNT(*) > 3"), "p: group by has changed"),
    "what is made of the results of groups": (minutes(), minutes("COUNT(*) * 10 AS c"), "p: group by has changed"),
    "a filter before an order that the target declares": (
        "CREATE PUMP p AS INSERT INTO steps SELECT STREAM k, v FROM s WHERE v > 3;",
        "CREATE PUMP p AS INSERT INTO steps SELECT STREAM k, v FROM s WHERE v > 5;",
        "p: select has changed",
    ),
    "the filter of a query": (
        "SELECT STREAM k FROM s WHERE v > 3;",
        "SELECT STREAM k FROM s;",
        "query: select has changed",
    ),
}


@pytest.mark.parametrize("what", ACCEPTED)
def test_operators_on_single_rows_may_change(what: str) -> None:
    before, after, line = ACCEPTED[what]
    for one, other in ((before, after), (after, before)):
        found = upgraded(one, other, () if "joined" in what else None)
        sinks = [name for name in found.continues if name.endswith((".sink", ".result"))]
        assert len(sinks) == 1
        assert all(found.continues[name] == name for name in sinks)
        assert not any(name in found.new for name in (*sinks, "f", "p.sink.merge"))
        if one == before:
            assert line in found.lines


TUNING = {
    "parquet": (", compression 'snappy'", ", compression 'zstd'", "compression snappy is zstd"),
    "json": ("", ", compression 'gzip'", "compression not set is gzip"),
    "delta": (", commit.interval '1 minute'", "", "commit.interval 1 minute is not set"),
}


@pytest.mark.parametrize("format_", TUNING)
def test_options_that_say_how_rows_are_written_may_change(format_: str) -> None:
    *options, words = TUNING[format_]
    rows = raw("k, v FROM s")
    found = upgraded(rows, rows, formats=(format_, format_), options=(options[0], options[1]))
    assert found.lines == (f"p: {words}",)
    assert found.continues["p.sink"] == "p.sink"


STATEFUL: dict[str, tuple[str, str]] = {
    "a filter below groups": (
        "CREATE VIEW f AS SELECT STREAM k, v FROM s WHERE v > 3; " + minutes(of="f"),
        "CREATE VIEW f AS SELECT STREAM k, v FROM s WHERE v > 5; " + minutes(of="f"),
    ),
    "a projection below groups": (
        "CREATE VIEW f AS SELECT STREAM k, v FROM s; " + minutes("SUM(v) AS c", of="f"),
        "CREATE VIEW f AS SELECT STREAM k, v + 1 AS v FROM s; " + minutes("SUM(v) AS c", of="f"),
    ),
    "a filter below a sort and groups": (
        ordered("WHERE v > 3") + minutes(of="f"),
        ordered("WHERE v > 5") + minutes(of="f"),
    ),
    "an aggregate": (minutes(), minutes("SUM(v) AS c")),
    "an aggregate of HAVING": (minutes(), minutes(having=" HAVING SUM(v) > 3")),
    "the time of a sort": (
        ordered() + raw("k, v FROM f"),
        ordered(time="(ev + INTERVAL '1' HOUR)") + raw("k, v FROM f"),
    ),
    "the value of a declared order": (
        "CREATE PUMP p AS INSERT INTO steps SELECT STREAM k, v FROM s;",
        "CREATE PUMP p AS INSERT INTO steps SELECT STREAM k, v + 1 FROM s;",
    ),
    "a side of a union": (
        raw("k, v FROM s UNION ALL SELECT STREAM k, v FROM s"),
        raw("k, v FROM s UNION ALL SELECT STREAM k, v FROM s UNION ALL SELECT STREAM k, v FROM s"),
    ),
    "a filter below a window": (
        "CREATE VIEW f AS SELECT STREAM k, v FROM s WHERE v > 3; "
        + raw("k, SUM(v) OVER (ORDER BY f.ROWTIME RANGE INTERVAL '1' MINUTE PRECEDING) FROM f"),
        "CREATE VIEW f AS SELECT STREAM k, v FROM s WHERE v > 5; "
        + raw("k, SUM(v) OVER (ORDER BY f.ROWTIME RANGE INTERVAL '1' MINUTE PRECEDING) FROM f"),
    ),
    "a filter before what is limited": (raw("k, v FROM s WHERE v > 3 LIMIT 5"), raw("k, v FROM s WHERE v > 5 LIMIT 5")),
}


@pytest.mark.parametrize("what", STATEFUL)
def test_state_belongs_to_the_query_that_made_it(what: str) -> None:
    before, after = STATEFUL[what]
    with pytest.raises(Refused, match="R401 the checkpoint belongs to another query") as refused:
        upgraded(before, after, ())
    assert "rowtime migrate FILE --checkpoint DIR --take-over p." in str(refused.value)


def test_a_refusal_says_which_pumps_could_go_on() -> None:
    others = "CREATE PUMP q AS INSERT INTO steps SELECT STREAM k, v FROM s;"
    with pytest.raises(Refused, match=r"--take-over p --take-over q\. What is kept for q fits it as it is\."):
        upgraded(minutes() + others, minutes("SUM(v) AS c") + others, ())


def test_rows_that_wait_keep_their_columns() -> None:
    before, after = "SELECT STREAM k, v FROM s;", "SELECT STREAM k, v, w FROM s;"
    with pytest.raises(Refused, match=r"rows that wait .* have the columns k STRING, v BIGINT, and those that follow"):
        upgraded(before, after, {"query.result.merge"})
    with pytest.raises(Refused, match="R401"):
        upgraded(before, after, None)
    assert upgraded(before, after, ()).lines == ("query: select has changed",)


def test_a_table_that_is_joined_adds_to_the_order_of_rows_that_wait() -> None:
    before, after = raw("k, v FROM s"), raw("k, v FROM s JOIN names ON s.k = names.k")
    before = before.replace("k, v FROM s", "k, v FROM s WHERE v > 3")
    assert upgraded(before, after.replace("k, v", "s.k, v"), ()).lines[0].startswith("p: ")
    with pytest.raises(Refused, match="R401"):
        upgraded(before, after.replace("k, v", "s.k, v"), {"p.sink.merge"})
