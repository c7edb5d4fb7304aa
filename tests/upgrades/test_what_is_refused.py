"""Which changes of the SQL a checkpoint accepts, and the refusals of the others; without Spark."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rowtime.client.home import Home
from rowtime.core.errors import Refused
from rowtime.plan.program import Program, compile_script
from rowtime.plan.stored import FORMAT, StoredPlan
from rowtime.plan.upgrade import Upgrade, check_same, retired, upgrade_of
from tests.upgrades.changing import LATE, LOG, MINUTES, OTHER, RAW, script


def compiled(sql: str, **given: Any) -> Program:
    program = compile_script(sql.replace("{out}", "out"), **given)
    assert program.problems == ()
    return program


def plan_of(sql: str, **given: Any) -> StoredPlan:
    """A plan as a checkpoint returns it."""
    plan = compiled(sql, **given).described().as_json()
    return StoredPlan.read(json.loads(json.dumps({"format": FORMAT, **plan})))


def upgraded(before: str, after: str) -> Upgrade:
    upgrade = upgrade_of(plan_of(before), compiled(after))
    assert upgrade is not None
    return upgrade


def refusal(before: str, after: str) -> str:
    with pytest.raises(Refused) as refused:
        upgrade_of(plan_of(before), compiled(after))
    assert [problem.code for problem in refused.value.problems] == ["R401"]
    return str(refused.value)


ALL = (MINUTES, RAW, LATE, LOG)
BOTH = script(*ALL)
SORTED = "CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '20' SECOND"


def test_an_unchanged_script_is_not_a_change() -> None:
    assert upgrade_of(plan_of(BOTH), compiled(BOTH)) is None


def test_a_renamed_view_keeps_its_state_under_the_new_name() -> None:
    found = upgraded(BOTH, script(*ALL, view="in_order"))
    assert {now: was for now, was in found.continues.items() if now != was} == {
        "in_order": "sorted",
        "in_order.select": "sorted.select",
        "in_order.rejected": "sorted.rejected",
    }
    assert (found.new, found.gone, found.copies, found.eased) == ((), (), {}, {})


def test_two_views_that_exchange_their_names_exchange_their_state() -> None:
    views = """CREATE VIEW a AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '1' SECOND;
CREATE VIEW b AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '1' SECOND, k;
CREATE PUMP p1 AS INSERT INTO minutes SELECT STREAM k, COUNT(*), SUM(v) FROM a GROUP BY FLOOR(a.ROWTIME TO DAY), k;
CREATE PUMP p2 AS INSERT INTO raw SELECT STREAM k, v FROM b;
""".replace("ORDER BY ev WITHIN INTERVAL '1' SECOND, k", "ORDER BY ev, k WITHIN INTERVAL '1' SECOND")
    head = script().split("CREATE VIEW", maxsplit=1)[0]
    exchanged = re.sub(r"\b[ab]\b", lambda name: "ba"["ab".index(name[0])], views)
    found = upgraded(head + views, head + exchanged)
    assert (found.continues["a"], found.continues["b"]) == ("b", "a")
    assert set(found.lines) == {"a is called b", "b is called a"}


MARKS = {
    "a checked promise": "SELECT STREAM MONOTONIC(v) AS m FROM s",
    "a declared order": "SELECT STREAM id AS m FROM s",
    "a running call": "SELECT STREAM MAX(v) OVER (ORDER BY s.ROWTIME ROWS UNBOUNDED PRECEDING) AS m FROM s",
}


@pytest.mark.parametrize("what", MARKS)
def test_names_inside_of_expressions_follow_a_renamed_view(what: str) -> None:
    sql = f"""CREATE STREAM s (id BIGINT ASCENDING, v BIGINT);
CREATE STREAM o (id BIGINT, c BIGINT) USING parquet OPTIONS (path 'o');
CREATE VIEW one AS {MARKS[what]};
CREATE PUMP p AS INSERT INTO o SELECT STREAM m, COUNT(*) FROM one GROUP BY m;
"""
    assert "__m:" in str(plan_of(sql).operators)
    found = upgraded(sql, sql.replace("one", "another"))
    assert (found.new, found.gone, found.lines) == ((), (), ("one is called another",))
    assert all(now == was or now.replace("another", "one") == was for now, was in found.marks.items())
    assert bool(found.marks) == (what == "a running call")


@pytest.mark.parametrize("width", [5, 90])
def test_a_tolerance_may_be_wider_or_narrower(width: int) -> None:
    found = upgraded(BOTH, script(*ALL, within=width))
    assert dict(found.eased) == {"sorted": f"WITHIN 0:00:20 is 0:0{width // 60}:{width % 60:02}"}
    assert (found.new, found.gone) == ((), ())


def test_a_guard_of_a_stream_may_be_wider() -> None:
    sql = "CREATE STREAM s (a INT) EARLY BEYOND INTERVAL '1' HOUR; SELECT STREAM a FROM s;"
    assert upgraded(sql, sql.replace("'1'", "'2'")).lines == ("s: EARLY BEYOND 1:00:00 is 2:00:00",)


def test_a_new_sink_starts_with_a_copy_of_what_another_holds() -> None:
    found = upgraded(BOTH, script(*ALL, OTHER))
    assert found.copies["p3.sink.merge"] in ("p2.sink.merge", "p5.sink.merge")
    assert found.lines == ("p3 is new",)


def test_a_sink_that_is_the_first_in_order_says_that_it_begins_now() -> None:
    found = upgraded(script(MINUTES), script(MINUTES, RAW))
    assert found.copies == {}
    assert found.lines == ("p2 is new, and begins with the rows read from now on",)


def test_a_whole_pipeline_may_be_added_over_unread_streams() -> None:
    more = """CREATE STREAM t (a BIGINT); CREATE STREAM hours (c BIGINT) USING csv OPTIONS (path 'hours');
CREATE PUMP p9 AS INSERT INTO hours SELECT STREAM COUNT(*) FROM t GROUP BY FLOOR(t.ROWTIME TO HOUR);"""
    assert upgraded(BOTH, BOTH + more).lines == ("p9 is new",)


def test_a_console_query_may_come_before_another() -> None:
    one, two = "SELECT STREAM k FROM s;", "SELECT STREAM v FROM s;"
    found = upgraded(script() + one, script() + two + one)
    assert found.continues["query2.result"] == "query.result"
    assert found.new[-1] == "query1.result"


# -- refused ----------------------------------------------------------------------------

HISTORY = "would need rows from before the change\nPut it into a separate script with its own --checkpoint"
GUARDED = f"{SORTED} EARLY BEYOND INTERVAL '1' HOUR RESYNC AFTER 3 ROWS"
REFUSED: dict[str, tuple[str, str, str]] = {
    "a new group": (script(RAW), script(RAW, MINUTES), f"p1 is new, and its group by {HISTORY}"),
    "a new sort": (
        script(RAW),
        script(RAW) + SORTED.replace("sorted", "b").replace("'20'", "'9'") + "; " + OTHER.format(view="b"),
        f"b is new, and its t-sort {HISTORY}",
    ),
    "another list of aggregates": (
        BOTH,
        BOTH.replace("SUM(v) AS total FROM", "MAX(v) AS total FROM", 1),
        "p1 was CREATE PUMP p1 AS INSERT INTO minutes SELECT STREAM k, COUNT(*) AS c, SUM(v) AS total FROM",
    ),
    "another group": (BOTH, BOTH.replace("TO MINUTE", "TO HOUR"), "p1 was CREATE PUMP p1 AS INSERT INTO minutes"),
    "another key of a sort": (
        BOTH,
        BOTH.replace("ORDER BY ev", "ORDER BY ev, k"),
        f"sorted was {SORTED}, is {SORTED.replace('ORDER BY ev', 'ORDER BY ev, k')}",
    ),
    "a filter below a sort": (BOTH, BOTH.replace("FROM s\n", "FROM s WHERE v > 0\n"), f"sorted was {SORTED}, is"),
    "a guard where there was none": (
        BOTH,
        BOTH.replace("'20' SECOND", "'20' SECOND EARLY BEYOND INTERVAL '1' HOUR"),
        f"sorted was {SORTED}, is {SORTED} EARLY BEYOND",
    ),
    "a tolerance where rows wait for a verdict": (
        BOTH.replace(SORTED.split("ORDER")[1], GUARDED.split("ORDER")[1]),
        BOTH.replace(SORTED.split("ORDER")[1], GUARDED.split("ORDER")[1].replace("'20'", "'30'")),
        "sorted was",
    ),
    "another column": (BOTH, BOTH.replace("ev TIMESTAMP", "ev TIMESTAMP, w INT"), "s was CREATE STREAM s (k STRING"),
    "another target": (BOTH, BOTH.replace("INTO raw", "INTO other"), "p2 was CREATE PUMP p2 AS INSERT INTO raw"),
    "another path": (BOTH, BOTH.replace("{out}/raw", "{out}/raw2"), "raw was CREATE STREAM raw"),
    "a pump of another name": (
        BOTH,
        BOTH.replace("PUMP p2", "PUMP q2"),
        "q2 is new, and p2, which is gone, still owns its target or name\nKeep the name and the target",
    ),
    "a pump into a stream that is read": (
        script(RAW),
        script(RAW) + "CREATE PUMP f AS INSERT INTO s SELECT STREAM a, b, c FROM t;"
        "CREATE STREAM t (a STRING, b BIGINT, c TIMESTAMP);",
        "the script adds f, t, and ",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_changes_that_do_not_fit_the_state_are_refused_with_the_difference(what: str) -> None:
    before, after, said = REFUSED[what]
    words = refusal(before, after)
    assert words.startswith("R401 the checkpoint belongs to another query: ")
    assert said.replace("{out}", "out") in words
    assert "operators" not in words


def test_panes_keep_their_discard_age() -> None:
    sql = """CREATE STREAM s (k STRING, ev TIMESTAMP) EVENT TIME (ev);
SELECT STREAM k, COUNT(*) AS c FROM s
  GROUP BY PANES(ev, DURATION INTERVAL '10' SECOND, DISCARD AGE INTERVAL '1' MINUTE), k;"""
    assert "query was SELECT STREAM k" in refusal(sql, sql.replace("'1' MINUTE", "'2' MINUTE"))


def test_a_variable_that_differs_is_shown_by_the_operator() -> None:
    sql = "CREATE STREAM s (a INT); SELECT STREAM SUM(a + ${least}) FROM s GROUP BY FLOOR(s.ROWTIME TO DAY);"
    with pytest.raises(Refused, match=r"R401.*query\.group was .group by.*a \+ 1.*is .group by.*a \+ 2"):
        upgrade_of(plan_of(sql, variables={"least": "1"}), compiled(sql, variables={"least": "2"}))


def test_statements_are_shown_with_their_variables() -> None:
    sql, given = (
        "CREATE STREAM s (a INT, b INT); SELECT STREAM SUM(a + ${least}) FROM s GROUP BY FLOOR(s.ROWTIME TO DAY);",
        {"variables": {"least": "1"}},
    )
    with pytest.raises(Refused, match=r"was SELECT STREAM SUM\(a \+ \$\{least\}\) FROM s.*, is SELECT STREAM SUM\(b"):
        upgrade_of(plan_of(sql, **given), compiled(sql.replace("SUM(a", "SUM(b"), **given))


def test_a_stream_that_the_home_defines_otherwise_is_shown_by_the_operator(tmp_path: Path) -> None:
    homes = [Home(tmp_path / name) for name in "ab"]
    for home, kind in zip(homes, ("INT", "BIGINT"), strict=True):
        for stream in compiled(f"CREATE STREAM s (a {kind});").defines:
            home.define(stream.name, stream.as_json())
    sql = "SELECT STREAM a FROM s;"
    with pytest.raises(Refused, match=r"R401.*: s was 'stream\(; columns=\[\(a, INT\)\].*, is '.*BIGINT"):
        upgrade_of(plan_of(sql, home=homes[0]), compiled(sql, home=homes[1]))


def test_a_removed_pump_may_come_back_and_no_other_takes_its_place() -> None:
    upgrade = upgraded(BOTH, script(MINUTES, LATE, LOG))
    assert upgrade.gone == ("p2.select", "p2.sink.merge", "p2.sink")
    kept = retired(plan_of(BOTH), upgrade)
    assert list(kept) == ["p2.sink"]
    assert kept["p2.sink"] == {"format": "parquet", "options": [["path", "out/raw"], ["stream", "raw"]]}
    without = replace(plan_of(script(MINUTES, LATE, LOG)), retired=kept)
    back = upgrade_of(without, compiled(BOTH))
    assert back is not None
    assert back.lines == ("p2 is new",)
    for other in (BOTH.replace("PUMP p2", "PUMP q2"), BOTH.replace("INTO raw", "INTO other")):
        with pytest.raises(Refused, match="p2, which is gone, still owns"):
            upgrade_of(without, compiled(other))


def test_what_reads_a_checkpoint_again_takes_its_own_query_only() -> None:
    check_same(None, compiled(BOTH))
    check_same(plan_of(BOTH), compiled(BOTH))
    with pytest.raises(Refused, match=r"R401.*sorted was CREATE VIEW"):
        check_same(plan_of(BOTH), compiled(script(*ALL, within=21)))


TARGET = """CREATE STREAM s (k STRING, v BIGINT);
CREATE STREAM t ({columns}) USING {format} OPTIONS (path '{{out}}/t');
CREATE PUMP p AS INSERT INTO t SELECT STREAM k, v FROM s;
CREATE PUMP r AS INSERT INTO u SELECT STREAM k FROM p.rejected;
CREATE STREAM u (k STRING) USING json OPTIONS (path '{{out}}/u');
"""


def target(columns: str, format_: str = "json") -> str:
    return TARGET.format(columns=columns, format=format_)


@pytest.mark.parametrize(
    ("before", "after", "format_", "line"),
    [
        ("k STRING, v INT", "k STRING, v BIGINT NOT NULL", "json", "t: v INT is BIGINT, v is NOT NULL"),
        ("k VARCHAR(5), v BIGINT", "k VARCHAR(10), v BIGINT", "parquet", "t: k VARCHAR(5) is VARCHAR(10)"),
        ("k STRING, v INT", "k STRING, v INT CHECK (v > 0)", "parquet", "t: CHECK (v > 0) is new"),
        ("k STRING, v INT CHECK (v > 0)", "k STRING, v INT", "csv", "t: CHECK (v > 0) is gone"),
        ("k STRING NOT NULL, v INT", "k STRING, v INT", "parquet", "t: k is no longer NOT NULL"),
        ("k STRING, v DECIMAL(5, 2)", "k STRING, v DECIMAL(9, 2)", "csv", "t: v DECIMAL(5, 2) is DECIMAL(9, 2)"),
    ],
)
def test_a_target_that_is_declared_otherwise_ended_its_pump(before: str, after: str, format_: str, line: str) -> None:
    found = upgraded(target(before, format_), target(after, format_))
    assert found.lines == (line,)
    assert {name: found.continues[name] for name in ("p", "p.sink.merge", "p.sink")} == {
        name: name for name in ("p", "p.sink.merge", "p.sink")
    }, "its counts, the rows that wait and their numbers go on"
    assert found.continues["r.sink"] == "r.sink"


def test_a_gate_that_comes_or_goes_ended_its_pump() -> None:
    plain, checked = (
        target(columns).replace("CREATE PUMP r", "-- ").replace("  FROM p.rejected", "")
        for columns in ("k STRING, v BIGINT", "k STRING, v BIGINT CHECK (v < 9)")
    )
    assert upgraded(plain, checked).new == ("p",)
    assert upgraded(checked, plain).gone == ("p",)
    for found in (upgraded(plain, checked), upgraded(checked, plain)):
        assert found.continues["p.sink"] == "p.sink"


@pytest.mark.parametrize(
    ("before", "after", "format_", "why"),
    [
        ("k STRING, v BIGINT", "k STRING, v INT", "json", "t.v was BIGINT, is INT"),
        ("k STRING, v INT", "k STRING, v BIGINT", "parquet", "t.v was INT, is BIGINT"),
        ("k STRING, v INT", "k STRING, v STRING", "json", "t.v was INT, is STRING"),
        ("k VARCHAR(9), v INT", "k VARCHAR(5), v INT", "parquet", r"t.k was VARCHAR\(9\), is VARCHAR\(5\)"),
        ("k STRING, v INT", "name STRING, v INT", "json", "t had the columns k, v, and has name, v"),
        ("k STRING, v INT", "k STRING, v INT ASCENDING", "json", "t has a declared order"),
    ],
)
def test_a_declaration_that_existing_rows_do_not_fit_is_refused(
    before: str, after: str, format_: str, why: str
) -> None:
    assert re.search(
        f"the target of p has changed: {why}", said := refusal(target(before, format_), target(after, format_))
    )
    assert "Declare it as it was. Or define a new target" in said


def test_conditions_on_the_rows_of_a_stream_ended_its_readers() -> None:
    before, after = (
        target("k STRING, v BIGINT").replace("s (k STRING, v BIGINT)", f"s (k STRING, v BIGINT{check})")
        for check in ("", " CHECK (v > 0)")
    )
    before, after = (text.replace("CREATE PUMP r", "-- ").replace("FROM p.rejected", "") for text in (before, after))
    assert upgraded(before, after).lines == ("s: CHECK or NOT NULL of its rows has changed",)
    assert "R401" in refusal(after, after.replace("v BIGINT CHECK", "v INT CHECK"))


def test_a_target_whose_rows_do_not_fit_is_replaced_by_a_new_one() -> None:
    before, after = (target(columns) for columns in ("k STRING, v BIGINT", "k STRING, v INT"))
    assert "define a new target with its own directory" in refusal(before, after)
    assert upgrade_of(plan_of(before), compiled(before)) is None, "declared as it was"
    other = after.replace("STREAM t ", "STREAM t2 ").replace("/t'", "/t2'").replace("INTO t ", "INTO t2 ")
    other = other.replace("PUMP p ", "PUMP p2 ").replace("p.rejected", "p2.rejected")
    before, other = (re.sub("CREATE PUMP r .*", "", text) for text in (before, other))
    assert upgraded(before, other).lines[-2:] == ("p2 is new, and begins with the rows read from now on", "p is gone")


OF_MINUTES = """CREATE STREAM s (v INT);
CREATE VIEW m AS SELECT STREAM FLOOR(s.ROWTIME TO MINUTE) AS m, SUM(v) AS t FROM s GROUP BY FLOOR(s.ROWTIME TO MINUTE);
SELECT STREAM {key} AS k, SUM(t) AS t FROM m GROUP BY {key};"""
FORMER = {"FLOOR(m TO HOUR)": "date_trunc('HOUR', `__t` - INTERVAL '1' MINUTE)", "m": "`__t` - INTERVAL '1' MINUTE"}
"""The keys over columns of groups as release 0.1 closed them: the hour of minutes, a minute too late."""


@pytest.mark.parametrize("key", FORMER)
def test_a_checkpoint_whose_groups_of_groups_were_stamped_too_late_does_not_continue(key: str) -> None:
    sql = OF_MINUTES.format(key=key)
    plan = plan_of(sql)
    group = plan.operators["query.group"]
    assert FORMER[key] in str(group.fields["keys"]), "as the release had it"
    fields = {**group.fields, "closers": group.fields["keys"]}
    before = replace(plan, operators={**plan.operators, group.name: replace(group, fields=fields)})
    if key == "m":
        assert upgrade_of(before, compiled(sql)) is None, "its stamp has always been right"
        return
    with pytest.raises(Refused, match=r"R401"):
        upgrade_of(before, compiled(sql))


HOURS = "CREATE STREAM s (v INT);\nSELECT STREAM {key} AS k, SUM(v) AS t FROM s GROUP BY {key}"
SORTED_BY = "CREATE STREAM s (v INT);\nSELECT STREAM v FROM s ORDER BY {key}, v"
RESTAMPED = {
    "DATE_FORMAT(s.ROWTIME, 'yyyy-MM-dd HH')": True,
    "TIME_BUCKET(INTERVAL '1' HOUR, s.ROWTIME)": True,
    "UNIX_TIMESTAMP(s.ROWTIME)": True,
    "TIMESTAMPADD(HOUR, 1, s.ROWTIME)": True,
    "FLOOR(s.ROWTIME TO HOUR)": False,
    "STEP(s.ROWTIME BY INTERVAL '5' MINUTE)": False,
    "UNIX_SECONDS(s.ROWTIME) DIV 3600": False,
    "s.ROWTIME": False,
}
"""Keys, and whether release 0.1 gave their groups another rowtime."""


@pytest.mark.parametrize("sql", [HOURS, SORTED_BY], ids=["groups", "a sort"])
@pytest.mark.parametrize("key", RESTAMPED)
def test_a_checkpoint_whose_groups_release_0_1_stamped_otherwise_does_not_continue(sql: str, key: str) -> None:
    sql = sql.format(key=key)
    plan = plan_of(sql)
    fields = {name: {**node.fields} for name, node in plan.operators.items()}
    marked = [of.pop("anew") for of in fields.values() if "anew" in of]
    assert marked == ([True] if RESTAMPED[key] else [])
    old = {name: replace(node, fields=fields[name]) for name, node in plan.operators.items()}
    before = replace(plan, operators=old)
    if not RESTAMPED[key]:
        assert upgrade_of(before, compiled(sql)) is None
        return
    with pytest.raises(Refused, match=r"R401"):
        upgrade_of(before, compiled(sql))
