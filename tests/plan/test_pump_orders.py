"""Orders to pumps of another script, without Spark: the meant pumps, refusals, and the stored plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowtime.client.home import Home
from rowtime.core.errors import Refused
from rowtime.plan.program import compile_script
from rowtime.plan.pump_orders import Order, Orders
from rowtime.plan.stored import FORMAT, StoredPlan
from rowtime.plan.upgrade import upgrade_of
from rowtime.runtime.pump_ordering import Ordered, give_order
from rowtime.state import pump_orders
from rowtime.state.checkpoint import Checkpoint

SCRIPT = """
SET SCHEMA 'app';
CREATE STREAM s (v BIGINT);
CREATE STREAM t (v BIGINT);
CREATE STREAM files (v BIGINT) USING parquet OPTIONS (path '/tmp/nowhere');
CREATE PUMP keep STOPPED AS INSERT INTO files SELECT STREAM v FROM s;
CREATE PUMP "odd name" AS INSERT INTO t SELECT STREAM v FROM s;
-- a comment at its end"""
KAFKA = """
CREATE STREAM s (v BIGINT);
CREATE STREAM topic (v BIGINT) USING kafka
  OPTIONS ("kafka.bootstrap.servers" 'localhost:1', topic 't', "kafka.sasl.jaas.config" '${secret}');
CREATE PUMP one STOPPED AS INSERT INTO topic SELECT STREAM v FROM s;
CREATE PUMP two AS INSERT INTO topic SELECT STREAM v + 1 AS v FROM s;
"""


def started(folder: Path, script: str = SCRIPT) -> Checkpoint:
    """The checkpoint of a pipeline that has run no tick."""
    place = Checkpoint(folder / "check")
    place.folder.mkdir(exist_ok=True)
    place.bind(compile_script(script, variables={"secret": "x"}).described())
    return place


def give(folder: Path, text: str) -> Ordered:
    return give_order(folder / "check", text, home=Home(folder / "home"))


@pytest.mark.parametrize(
    ("text", "pumps"),
    [
        ("ALTER PUMP app.keep START", {"app.keep": True}),
        ("ALTER PUMP app.* STOP;", {"app.keep": False, "app.odd name": False}),
        ("ALTER PUMP * START -- all", {"app.keep": True, "app.odd name": True}),
        ("SET SCHEMA 'app'; ALTER PUMP keep, \"odd name\" START", {"app.keep": True, "app.odd name": True}),
        ("SET PATH 'app'; ALTER PUMP KEEP START", {"app.keep": True}),
        ("ALTER PUMP *.* STOP; ALTER PUMP app.keep START", {"app.keep": True, "app.odd name": False}),
    ],
)
def test_names_mean_the_pumps_of_the_checkpoint(tmp_path: Path, text: str, pumps: dict[str, bool]) -> None:
    started(tmp_path)
    given = give(tmp_path, text)
    assert given.pumps == pumps
    was = {"app.keep": False, "app.odd name": True}
    assert set(given.unchanged) == {name for name, start in pumps.items() if was[name] == start}


@pytest.mark.parametrize(
    ("text", "code", "message", "hint"),
    [
        ("ALTER PUMP keep START", "R103", "there is no pump keep", "There are: app.keep, app.odd name."),
        ("ALTER PUMP b.* START", "R103", "there is no pump whose name begins with b.", "There are: app.keep"),
        (
            "ALTER PUMP app.keep START; CREATE VIEW v AS SELECT STREAM v FROM s",
            "R149",
            "CREATE VIEW is not",
            "Give only",
        ),
        ("ALTER PUMP app.keep TAKE OVER", "R149", "ALTER PUMP … TAKE OVER is not", "--take-over"),
        ("-- nothing", "R149", "the text has no ALTER PUMP", "Give only ALTER PUMP … START"),
        ("ALTER PUMP app.keep BEGIN", "R101", "", ""),
    ],
)
def test_what_is_no_order_is_refused_with_its_place(
    tmp_path: Path, text: str, code: str, message: str, hint: str
) -> None:
    place = started(tmp_path)
    with pytest.raises(Refused) as refused:
        give(tmp_path, text)
    [problem] = refused.value.problems
    assert (problem.code, problem.message.startswith(message), hint in problem.hint) == (code, True, True), problem
    assert (problem.place is None) == text.startswith("--")
    assert not (place.folder / "orders").exists()


def test_what_the_hints_say_is_accepted(tmp_path: Path) -> None:
    started(tmp_path)
    for text in ("ALTER PUMP app.keep START", 'ALTER PUMP app."odd name" STOP'):
        give(tmp_path, text)
    script = SCRIPT.partition("-- ")[0] + "ALTER PUMP app.keep TAKE OVER;"
    assert compile_script(script).take_over == {"app.keep"}


def test_a_script_of_orders_alone_names_the_command_that_takes_them() -> None:
    [problem] = compile_script("ALTER PUMP app.* START").problems
    assert problem.code == "R103"
    assert "rowtime alter FILE --checkpoint DIR" in problem.hint


def test_a_stored_script_says_what_was_ordered(tmp_path: Path) -> None:
    orders = Orders().after(Order({"app.keep": True, "app.odd name": False, "gone": True}, "said", 7, "a file"))
    program = compile_script(SCRIPT, orders=orders)
    plan = program.described()
    assert program.written.endswith(';ALTER PUMP "app"."keep" START\n;ALTER PUMP "app"."odd name" STOP')
    assert (program.stopped, plan.stopped) == ({"app.odd name"}, ("app.odd name",))
    again = compile_script(plan.sql)
    assert (again.problems, again.stopped) == ((), program.stopped)
    assert plan.is_of(again.operators)
    assert StoredPlan.read({"format": FORMAT, **plan.as_json()}) == plan
    place = started(tmp_path)
    place.bind(plan)
    assert place.plan == plan


def test_an_order_wins_over_the_script_until_another_one(tmp_path: Path) -> None:
    place = started(tmp_path)
    for text in ("ALTER PUMP * START", "ALTER PUMP * STOP", "ALTER PUMP app.keep START"):
        give(tmp_path, text)
    orders = Orders()
    for order in pump_orders.waiting(place.folder, orders):
        orders = orders.after(order)
    assert compile_script(SCRIPT, orders=orders).stopped == {"app.odd name"}
    assert orders.pumps["app.keep"]["text"] == "ALTER PUMP app.keep START"
    pump_orders.done(place.folder, orders.taken)
    assert pump_orders.waiting(place.folder, orders) == []


def test_a_pump_cannot_come_to_a_topic_that_has_another(tmp_path: Path) -> None:
    place = started(tmp_path, KAFKA)
    place.journal.commit(0, {"segments": {}, "held": {}, "outputs": {}})
    with pytest.raises(Refused, match="R446"):
        give(tmp_path, "ALTER PUMP one START")
    assert give(tmp_path, "ALTER PUMP two STOP").changes == ("two is stopped",)


def test_what_nobody_else_reads_is_paused() -> None:
    script = SCRIPT + "\n;CREATE STREAM u (v BIGINT); CREATE PUMP third AS INSERT INTO t SELECT STREAM v FROM u;"
    all_run = compile_script(script, orders=Orders().after(Order({"app.keep": True}, "", 0)))
    plan = all_run.described()

    def paused(*pumps: str) -> set[str]:
        stopped = compile_script(script, orders=all_run.orders.after(Order(dict.fromkeys(pumps, False), "", 1)))
        upgrade = upgrade_of(plan, stopped)
        assert upgrade is not None
        return {*upgrade.paused}

    assert paused("app.keep") == set()  # its stream continues
    assert "app.u" in paused("app.third")
    assert {"app.s", "app.keep.sink", "app.odd name.sink"} <= paused("app.keep", "app.odd name")
    assert "app.u" not in paused("app.keep", "app.odd name")


def test_who_stops_a_pump_is_told_that_it_cannot_start_again(tmp_path: Path) -> None:
    grouped = """
    CREATE STREAM counts (h TIMESTAMP, n BIGINT) USING csv OPTIONS (path '/tmp/nowhere else');
    CREATE PUMP counted AS INSERT INTO counts
      SELECT STREAM FLOOR(x.ROWTIME TO HOUR) AS h, COUNT(*) AS n FROM s AS x GROUP BY FLOOR(x.ROWTIME TO HOUR);
    """
    place = started(tmp_path, SCRIPT.partition("-- ")[0] + grouped)
    place.journal.commit(0, {"segments": {}, "held": {}, "outputs": {}})
    assert "app.counted is new, and its group by would need rows" in give(tmp_path, "ALTER PUMP app.counted STOP").final
    assert give(tmp_path, "ALTER PUMP app.counted START").final == ""
    assert give(tmp_path, "ALTER PUMP * STOP").final == ""  # its stream stops as well


def test_a_pump_without_a_schema_is_not_taken_for_one_of_the_schema() -> None:
    script = "CREATE STREAM t (v INT); CREATE STREAM u (v INT); CREATE STREAM s (v INT);"
    script += "CREATE PUMP p AS INSERT INTO t SELECT STREAM v FROM s; SET SCHEMA 'a';"
    script += "CREATE PUMP p AS INSERT INTO u SELECT STREAM v FROM s"
    program = compile_script(script, orders=Orders().after(Order({"p": False}, "", 0)))
    assert (program.stopped, compile_script(program.described().sql).stopped) == ({"p"}, {"p"})
