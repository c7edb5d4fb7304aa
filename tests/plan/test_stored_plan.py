"""The stored plan: data that is read by key."""

from __future__ import annotations

import json

import pytest

from rowtime.core.errors import Refused
from rowtime.plan.program import Program, compile_script
from rowtime.plan.stored import FORMAT, StoredPlan
from rowtime.plan.upgrade import upgrade_of
from tests.checkpoints import make

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
    return StoredPlan.read(json.loads(json.dumps({"format": FORMAT, **plan.as_json()})))


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


def test_a_plan_of_an_older_format_is_refused() -> None:
    """Release 0.2.0 has written this format already."""
    plan = compiled(SCRIPT).described().as_json()
    with pytest.raises(Refused, match="R402 the plan of the checkpoint has format 3, this version reads format 4"):
        StoredPlan.read({"format": FORMAT - 1, **plan})


@pytest.mark.parametrize(
    "change", [("'20'", "'30'"), ("MAX(v)", "MIN(v)"), ("(path 'o'", "(path 'p'"), ("k STRING, v", "k CHAR(3), v")]
)
def test_different_scripts_have_different_plans(change: tuple[str, str]) -> None:
    other = compiled(SCRIPT.replace(*change))
    assert not again(compiled(SCRIPT).described()).is_of(other.operators)


def test_a_count_of_different_values_is_another_function() -> None:
    """In a frame and over the rows of a match."""
    of_match = "MATCH_RECOGNIZE (ORDER BY ROWTIME MEASURES COUNT({}A.v) AS n PATTERN (A B) WITHIN INTERVAL '1' HOUR)"
    for text in ("COUNT({}v) OVER (ORDER BY ROWTIME ROWS 3 PRECEDING) AS n FROM s", f"n FROM s {of_match} AS m"):
        script = f"CREATE STREAM s (v INT); SELECT STREAM {text};"
        assert not compiled(script.format("")).described().is_of(compiled(script.format("DISTINCT ")).operators)


def test_a_renamed_view_of_joined_events_continues() -> None:
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
