"""Hints work: each script is refused, and `check` accepts it after the hint is followed."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from rowtime.plan.program import compile_script

GIVEN = """CREATE STREAM s (page STRING, t TIMESTAMP, n INT, id BIGINT ASCENDING);
CREATE STREAM r (page STRING, n INT, u TIMESTAMP);
CREATE STREAM e (k STRING, a TIMESTAMP, b TIMESTAMP) EVENT SHAPE INTERVAL (a, b) BOUND EVERY 1 ROWS;
"""
Follow = Callable[[str, str], str]


def replaced(pattern: str, by: str) -> Follow:
    """Replace what ``pattern`` finds in the script by the part of the hint that ``by`` finds as its group 1."""

    def follow(script: str, hint: str) -> str:
        found = re.search(by, hint)
        assert found is not None, f"{by} is not in {hint!r}"
        return re.sub(pattern, lambda _: found[1], script, count=1)

    return follow


def left_out(pattern: str) -> Follow:
    """Remove the part that the hint says to leave out."""
    return lambda script, hint: re.sub(pattern, "", script, count=1) if "eave " in hint else script


def both_windows(script: str, hint: str) -> str:
    return script.replace(" AS a", f" {window(hint)} AS a").replace(" AS b", f" {window(hint)} AS b")


def sorted_below(script: str, hint: str) -> str:
    return hint.split(": ", 1)[1].rstrip(".").replace("…", script.split("STREAM ")[1].split(" ORDER", maxsplit=1)[0])


def also_grouped(script: str, hint: str) -> str:
    return f"{script}, {hint.split(': ')[1].split(', ', maxsplit=1)[0]}"


def in_a_view(script: str, hint: str) -> str:
    return f"{hint.split(': ', 1)[1]} {script.replace('FROM s', 'FROM v')}"


GROUP, LAST = r"GROUP BY .*", r"(GROUP BY .*)\.$"
HOUR = "FLOOR(s.ROWTIME TO HOUR)"
MINUTE, MONTH = "INTERVAL '1' MINUTE", "INTERVAL '1' MONTH"
MEET = f"r.ROWTIME BETWEEN s.ROWTIME AND s.ROWTIME + {MINUTE}"
JOIN = "SELECT STREAM s.page FROM s JOIN r ON s.page = r.page"
CASES: list[tuple[str, str, Follow]] = [
    ("SELECT STREAM page, COUNT(*) AS n FROM s GROUP BY page", "R104", replaced(GROUP, LAST)),
    ("SELECT STREAM COUNT(*) AS c FROM s GROUP BY FLOOR(t TO HOUR)", "R104", replaced(GROUP, LAST)),
    ("SELECT STREAM COUNT(*) AS c FROM s", "R104", replaced("$", r"time as well:( GROUP BY .*)\.$")),
    (f"SELECT STREAM COUNT(*) AS c FROM s JOIN r ON {MEET} GROUP BY FLOOR(s.t TO HOUR)", "R104", replaced(GROUP, LAST)),
    ("SELECT STREAM DISTINCT page FROM s", "R104", replaced("DISTINCT ", "STREAM (DISTINCT .* AS hour, )…")),
    ("SELECT page FROM s", "R105", replaced("SELECT", "Write (SELECT STREAM)")),
    (f"SELECT STREAM n, COUNT(*) AS c FROM s GROUP BY {HOUR}", "R106", replaced(r"\bn\b", r"example (MAX\(n\))")),
    (f"SELECT STREAM s.ROWTIME, COUNT(*) AS c FROM s GROUP BY {HOUR}", "R106", left_out("s.ROWTIME, ")),
    ("SELECT STREAM page FROM s UNION SELECT STREAM page FROM r", "R109", replaced("UNION", "Write (UNION ALL)")),
    (f"SELECT STREAM t AS ROWTIME FROM s ORDER BY t DESC WITHIN {MINUTE}", "R120", left_out(" DESC")),
    (f"SELECT STREAM page FROM s ORDER BY t WITHIN {MINUTE}", "R121", replaced("page", "Select (t AS ROWTIME)")),
    (f"SELECT STREAM t AS ROWTIME FROM s ORDER BY t WITHIN {MONTH}", "R122", replaced(MONTH, r"example (.*)\.")),
    (f"SELECT STREAM COUNT(*) AS c FROM s GROUP BY n WITHIN {MINUTE}", "R128", replaced(GROUP, f"example {LAST}")),
    ("SELECT STREAM page FROM s ORDER BY n", "R138", replaced("ORDER.*", r"(ORDER BY .*)\.$")),
    ("SELECT STREAM page FROM s ORDER BY t", "R138", sorted_below),
    ("SELECT STREAM page FROM s JOIN r ON s.ROWTIME = r.ROWTIME", "R150", replaced("page", r"Write (s\.page)")),
    (f"{JOIN} AND s.ROWTIME > r.ROWTIME", "R152", replaced("ON .*", r"(ON .*)\.$")),
    (f"{JOIN.replace('JOIN', 'LEFT JOIN')} WHERE {MEET}", "R152", replaced("ON .*", r"(ON .*)\.$")),
    (JOIN, "R158", replaced("ON .*", r"(ON s\.page.*?)\. Or")),
    (JOIN, "R158", replaced("ON ", "say so: (ON .* AND )…")),
    ("SELECT STREAM a.page FROM s AS a JOIN r AS b ON a.page = b.page", "R158", both_windows),
    ("SELECT STREAM LEAD(n) OVER (ORDER BY s.ROWTIME) AS x FROM s", "R162", replaced("LEAD", "with (LAG)")),
    (
        "SELECT STREAM SUM(n) OVER (ORDER BY n ROWS 3 PRECEDING) AS x FROM s",
        "R164",
        replaced("ORDER BY n", "Write (.*)[.]"),
    ),
    ("SELECT STREAM COUNT(*) AS c FROM s GROUP BY PANES(t, DURATION INTERVAL '1' HOUR)", "R170", in_a_view),
    ("SELECT STREAM page FROM s LIMIT 1.5", "R186", replaced("LIMIT.*", "example (LIMIT 10)")),
    ("SELECT STREAM page FROM s LIMIT 10 OFFSET 2", "R186", left_out(" OFFSET 2")),
    ("SELECT STREAM page FROM s EMIT CHANGES", "R191", left_out("EMIT.*")),
    (
        "SELECT STREAM k, COUNT(*) AS c FROM e GROUP BY k",
        "R196",
        lambda script, hint: f"{script}, {hint.split(': ')[1].split(', ')[0]}",
    ),
]


def window(hint: str) -> str:
    found = re.search(r"OVER \(RANGE .*? PRECEDING\)", hint)
    assert found is not None
    return found[0]


@pytest.mark.parametrize(("script", "code", "follow"), CASES, ids=[f"{case[1]} {case[0][:60]}" for case in CASES])
def test_a_hint_that_is_followed_is_accepted(script: str, code: str, follow: Follow) -> None:
    program = compile_script(GIVEN + script)
    [told, *more] = [p for p in (*program.problems, *program.warnings) if p.code == code]
    assert more == []
    followed = follow(script, told.hint)
    assert followed != script
    after = compile_script(GIVEN + followed)
    assert [str(problem) for problem in (*after.problems, *after.warnings)] == []


@pytest.mark.parametrize(
    ("script", "hint"),
    [
        ("CREATE STREAM x (v INTT)", "Did you mean INT instead of INTT?"),
        ("CREATE TABLE x (v STRNG)", "Did you mean STRING instead of STRNG?"),
        ("SELECT STREAM * FROM Orders WHERE x = = 3", ""),
        ("SELECT STREAM * FROM Orders o WHRE x = 3", "Did you mean WHERE instead of WHRE?"),
    ],
)
def test_a_guess_is_of_the_kind_expected_there(script: str, hint: str) -> None:
    assert [problem.hint for problem in compile_script(script).problems] == [hint]


@pytest.mark.parametrize(
    ("script", "codes"),
    [
        ("SELECT STREAM page FROM s WHERE EXISTS (SELECT STREAM * FROM r WHERE r.page = s.page)", ["R152"]),
        (f"SELECT STREAM s.ROWTIME, COUNT(*) AS c FROM s GROUP BY {HOUR}", ["R106"]),
    ],
)
def test_one_mistake_is_one_problem(script: str, codes: list[str]) -> None:
    assert [problem.code for problem in compile_script(GIVEN + script).problems] == codes


def test_an_item_without_a_name_is_named_by_its_position() -> None:
    program = compile_script(GIVEN + f"SELECT STREAM COUNT(*), SUM(n), page FROM s GROUP BY {HOUR}, page")
    assert program.sinks[-1].columns == ["rowtime", "_c0", "_c1", "page"]


@pytest.mark.parametrize(
    "on",
    ["s.ROWTIME = r.ROWTIME AND s.page = r.page", f"r.ROWTIME BETWEEN s.ROWTIME AND s.ROWTIME + {MINUTE}"],
)
def test_a_join_with_a_condition_on_time_has_no_warning(on: str) -> None:
    assert compile_script(f"{GIVEN}SELECT STREAM s.page FROM s JOIN r ON {on}").warnings == ()


def test_an_equality_of_times_that_are_no_rowtimes_has_a_warning() -> None:
    (warning,) = compile_script(f"{GIVEN}SELECT STREAM s.page FROM s JOIN r ON s.t = r.u").warnings
    assert (warning.code, "the condition compares other times" in warning.message) == ("R158", True)


def test_names_that_joined_columns_have_inside_are_not_shown() -> None:
    program = compile_script(f"{GIVEN}SELECT STREAM s.page FROM s JOIN r ON s.t = r.u GROUP BY FLOOR(s.t TO HOUR)")
    assert "s_" not in "".join(str(problem) for problem in program.problems)
