"""The stored plan: data that is read by key; older plans, which are text, can be read too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rowtime.plan.program import Program, compile_script
from rowtime.plan.stored import FORMAT, StoredPlan
from rowtime.plan.stored_before import FormerPlan, read_plan
from rowtime.plan.upgrade import upgrade_of
from rowtime.state.checkpoint import Checkpoint
from tests.checkpoints import make
from tests.upgrades.former import former

SCRIPT = """CREATE STREAM s (k STRING, v BIGINT, ev TIMESTAMP) EARLY BEYOND INTERVAL '2' HOUR;
CREATE STREAM o (k STRING, m BIGINT) USING csv OPTIONS (path 'o', header 'true');
CREATE VIEW sorted AS SELECT STREAM ev AS ROWTIME, k, v FROM s ORDER BY ev WITHIN INTERVAL '20' SECOND;
CREATE PUMP p AS INSERT INTO o SELECT STREAM k, MAX(v) OVER (ORDER BY x.ROWTIME ROWS UNBOUNDED PRECEDING) FROM sorted x
"""


def compiled(sql: str) -> Program:
    program = compile_script(sql)
    assert program.problems == ()
    return program


def again(plan: StoredPlan) -> StoredPlan:
    """A plan as a checkpoint returns it."""
    return read_plan(json.loads(json.dumps({"format": FORMAT, **plan.as_json()})))


def test_a_plan_is_read_by_key() -> None:
    found = {one["name"]: one for one in json.loads(json.dumps(compiled(SCRIPT).described().as_json()))["operators"]}
    assert found["sorted"]["kind"] == "t-sort"
    assert found["sorted"]["inputs"] == ["sorted.select"]
    assert found["sorted"]["fields"]["within"] == {"micros": 20_000_000}
    assert found["s"]["fields"]["early"] == {"micros": 7_200_000_000}
    assert found["s"]["fields"]["columns"][1] == {"name": "v", "type": "BIGINT"}
    assert found["sorted.select"]["fields"]["items"][1] == {
        "column": {"name": "v", "type": "BIGINT"},
        "expression": "`v`",
    }
    (call,) = found["p.over"]["fields"]["calls"]
    assert (call["typed"], call["mark"]) == ("MAX(`v`)", {"mark": "p.v0"})
    assert dict(found["p.sink"]["fields"]["options"]) == {"path": "o", "header": "true", "stream": "o"}


def test_settings_without_effect_on_state_are_not_in_a_plan() -> None:
    idle = SCRIPT.replace("HOUR;", "HOUR IDLE AFTER INTERVAL '1' MINUTE;", 1)
    assert compiled(idle).operators != compiled(SCRIPT).operators
    assert compiled(idle).described().operators == compiled(SCRIPT).described().operators


@pytest.mark.parametrize("spelling", [True, False])
def test_a_plan_that_was_written_as_text_is_that_of_its_script(spelling: bool) -> None:
    program = compiled(SCRIPT.replace("k, MAX(v)", "NVL(k, '-'), MAX(v)"))
    before = read_plan(json.loads(json.dumps(former(program, spelling=spelling))))
    assert isinstance(before, FormerPlan)
    assert before.is_of(program.operators)
    assert before.formats == program.described().formats
    assert upgrade_of(before, program) is None


@pytest.mark.parametrize(
    "change", [("'20'", "'30'"), ("MAX(v)", "MIN(v)"), ("(path 'o'", "(path 'p'"), ("k STRING, v", "k CHAR(3), v")]
)
def test_different_scripts_have_different_plans(change: tuple[str, str]) -> None:
    other = compiled(SCRIPT.replace(*change))
    for plan in (again(compiled(SCRIPT).described()), read_plan(former(compiled(SCRIPT)))):
        assert not plan.is_of(other.operators)


def test_a_count_of_different_values_is_another_function() -> None:
    """In a frame and over the rows of a match."""
    of_match = "MATCH_RECOGNIZE (ORDER BY ROWTIME MEASURES COUNT({}A.v) AS n PATTERN (A B) WITHIN INTERVAL '1' HOUR)"
    for text in ("COUNT({}v) OVER (ORDER BY ROWTIME ROWS 3 PRECEDING) AS n FROM s", f"n FROM s {of_match} AS m"):
        script = f"CREATE STREAM s (v INT); SELECT STREAM {text};"
        assert not compiled(script.format("")).described().is_of(compiled(script.format("DISTINCT ")).operators)


@pytest.mark.parametrize("option", ["path", "paths"])
def test_a_text_that_looks_like_parts_of_a_plan_stays_one(option: str) -> None:
    """Older texts are split at such places; nothing is lost there."""
    sql = "CREATE STREAM s (k STRING); CREATE STREAM o (k STRING) USING csv OPTIONS (path '{}');"
    sql += "CREATE PUMP p AS INSERT INTO o SELECT STREAM k FROM s WHERE k <> '{}'"
    odd = (f"a], [{option}, b", "x; where=1; items=[y]")
    plan = read_plan(former(compiled(sql.format(*odd))))
    assert plan.is_of(compiled(sql.format(*odd)).operators)
    others = (f"{first}; where={second}; items=[{third}]" for first, second, third in ("y1y", "x2y", "x1z"))
    for other in (("a", odd[1]), *((odd[0], text) for text in others)):
        assert not plan.is_of(compiled(sql.format(*other)).operators)


OLD = [path for path in sorted(make.HERE.glob("format_*/*")) if path.parent.name != f"format_{FORMAT}"]


@pytest.mark.parametrize("old", OLD, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_plan_of_an_old_checkpoint_is_that_of_its_script_and_follows_a_renamed_view(old: Path) -> None:
    plan, sql = Checkpoint(old / "checkpoint").plan, (old / "script.sql").read_text()
    assert isinstance(plan, FormerPlan)
    assert plan.sql.strip(" \n;") == sql.strip(" \n;")
    assert upgrade_of(plan, compiled(sql)) is None or not plan.casts
    for view in ("sorted", "in_order", "running", "best", "sums", "known"):
        if f"VIEW {view} " in sql:
            found = upgrade_of(plan, compiled(sql.replace(view, "other")))
            assert found is not None
            assert not [name for name in found.new if name.startswith(("other", "tops.group"))]
            assert [was for now, was in found.continues.items() if now.startswith("other")]


def test_a_tolerance_of_an_old_checkpoint_may_change() -> None:
    old = make.HERE / "format_3" / "renamed_running_call"
    plan, sql = Checkpoint(old / "checkpoint").plan, (old / "script.sql").read_text()
    assert plan is not None
    assert plan.operators["sorted"].micros("within") == 20_000_000
    found = upgrade_of(plan, compiled(sql.replace("'20' SECOND", "'1' MINUTE").replace("'1' HOUR", "'2' HOUR")))
    assert found is not None
    assert found.eased == {"sorted": "WITHIN 0:00:20 is 0:01:00, EARLY BEYOND 1:00:00 is 2:00:00"}
    assert plan.spans["running.over"][0] == ["best.over", 0, 0]


def test_a_renamed_view_of_joined_events_continues() -> None:
    """In older plans it is not: the text of a join contained those of its inputs, with their names."""
    sql = make.script("changes_of_joined_events")
    found = upgrade_of(again(compiled(sql).described()), compiled(sql.replace("pairs", "other")))
    assert found is not None
    assert (found.new, found.gone, found.continues["other.join"]) == ((), (), "pairs.join")


def test_a_join_of_events_keeps_no_option_of_its_streams() -> None:
    kafka = (
        "USING kafka OPTIONS (subscribe 't', kafka.bootstrap.servers 'broker:9092', kafka.sasl.jaas.config 'Lit1Zw')"
    )
    program = compiled(f"""CREATE STREAM a (ev TIMESTAMP, k INT) EVENT SHAPE POINT (ev) {kafka};
CREATE STREAM b (ev TIMESTAMP, k INT) EVENT SHAPE POINT (ev) {kafka};
SELECT STREAM a.k FROM a JOIN b ON a.k = b.k""")
    text = json.dumps(program.described().as_json()["operators"])
    assert "lifetime join" in text
    assert "Lit1Zw" not in text
    assert "broker:9092" not in text
