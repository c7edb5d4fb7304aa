"""Bounds that clients set for a column of declared order: groups close, rows below them are refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.client.home import Home
from rowtime.core.errors import Refused
from rowtime.operators.order import ordered as ordered_module
from rowtime.operators.streams.column_bounds import about
from rowtime.plan.program import compile_script
from tests.oracle import feed as f
from tests.oracle.merge import merge
from tests.oracle.ordered import group_by_values, mark_of, ordered, said
from tests.oracle.stream import stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typer.testing import Result

pytestmark = pytest.mark.sampled(8)

GROUPS = "SELECT STREAM oid, COUNT(*) AS n FROM orders GROUP BY oid"


def cli(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def mostly_slow(cases: list[tuple[Any, ...]], *fast: int) -> list[Any]:
    """The cases, of which only those with these numbers belong to the default run."""
    return [case if n in fast else pytest.param(*case, marks=pytest.mark.slow) for n, case in enumerate(cases)]


def made(spark: SparkSession, folder: Path, sql: str, got: list[dict[str, Any]]) -> rt.Pipeline:
    pipeline = rt.Pipeline(spark, home=folder / "home").sql(sql)
    pipeline.sink("result", lambda batch: got.extend(batch.table().to_pylist() if batch.count else []))
    for found in pipeline.compile().defines:
        pipeline.home.define(found.name, found.as_json(), replace=True)
    return pipeline


@pytest.mark.parametrize(
    ("kind", "values", "bound", "strict", "closed", "refused"),
    mostly_slow([
        ("BIGINT ASCENDING", [1, 5], 6, False, [1, 5], 5),
        ("BIGINT ASCENDING", [1, 5], 5, False, [1], None),
        ("BIGINT ASCENDING", [1, 5], 5, True, [1, 5], 5),
        ("INT STRICTLY ASCENDING", [1, 5], 6, False, [1, 5], None),
        ("BIGINT DESCENDING", [5, 1], 0, False, [5, 1], 1),
        ("BIGINT ASCENDING WITHIN 2 ROWS", [5, 8, 9], 9, False, [5, 8], 8),
        ("STRING ASCENDING", ["a", "b"], "b", True, ["a", "b"], "b"),
        ("STRING STRICTLY DESCENDING", ["b", "a"], "a", False, ["b"], "a"),
        ("DOUBLE ASCENDING", [0.5, 1.5], 1.5, True, [0.5, 1.5], 1.5),
        ("FLOAT DESCENDING", [1.5, 0.5], 0.25, False, [1.5, 0.5], 0.5),
        ("DECIMAL(9, 2) DESCENDING", ["1.50", "1.49"], "1.49", True, ["1.50", "1.49"], "1.49"),
        ("DECIMAL(30, 2) ASCENDING", ["9.50", "10.50"], "10.50", True, ["9.50", "10.50"], "10.50"),
        ("BOOLEAN ASCENDING", [False], False, True, [False], False),
        ("DATE ASCENDING", ["2024-01-02"], "2024-01-02", True, ["2024-01-02"], "2024-01-02"),
        ("DATE ASCENDING WITHIN INTERVAL '1' DAY", ["2024-01-02", "2024-01-04"], "2024-01-04", False,
         ["2024-01-02"], "2024-01-03"),
        ("TIMESTAMP DESCENDING", ["2024-01-02 00:00:00"], "2024-01-02 00:00:00", True,
         ["2024-01-02 00:00:00"], "2024-01-02 00:00:00"),
    ], 3, 6),
)  # fmt: skip
def test_a_bound_of_any_type_closes_groups_and_refuses_rows_behind_it(
    spark: SparkSession, tmp_path: Path, kind: str, values: list[Any], bound: Any, strict: bool,
    closed: list[Any], refused: Any,
) -> None:  # fmt: skip
    got: list[dict[str, Any]] = []
    pipeline = made(spark, tmp_path, f"CREATE STREAM orders (oid {kind}); {GROUPS}", got)
    with rt.writer("orders", home=tmp_path / "home") as log:
        log.insert([{"oid": v, "rowtime": n} for n, v in enumerate(values, 1)])
        pipeline.run_available(tmp_path / "check")
        before = len(got)
        log.set_bound("OID", bound, strict)
        made(spark, tmp_path, GROUPS, got).run_available(tmp_path / "check")
        assert len(got) == len(closed), before
        assert [str(row["oid"]).removesuffix("+00:00") for row in got] == [str(value) for value in closed]
        if refused is not None:
            log.insert([{"oid": refused, "rowtime": 9}])
            query = made(spark, tmp_path, GROUPS, got).run_available(tmp_path / "check")
            assert query.ledger["orders.oid"]["BROKEN_ORDER"] == 1
    assert [str(row["oid"]).removesuffix("+00:00") for row in got] == [str(value) for value in closed]


Step = tuple[str, str, int, int]  # writer, row or bound, its value, its rowtime (µs)
KINDS = {
    "BIGINT ASCENDING": (0, 0),
    "INT STRICTLY ASCENDING": (-1, 0),
    "STRING ASCENDING": (0, 0),
    "STRING STRICTLY ASCENDING": (-1, 0),
    "BIGINT ASCENDING WITHIN 2 ROWS": (0, 2),
    "BIGINT DESCENDING": (0, 0),
}


def shown(kind: str, value: int) -> Any:
    if "STRING" in kind:
        return chr(ord("a") + value)
    return -value if "DESCENDING" in kind else value


def run(spark: SparkSession, folder: Path, kind: str, steps: list[Step], cuts: set[int]) -> tuple[list[Any], Any]:
    """Write and read in turn, with a new start before each read; all writers are present from the start."""
    got: list[dict[str, Any]] = []
    sql = f"CREATE STREAM orders (n INT, oid {kind}); SELECT STREAM oid, COUNT(*) AS n FROM orders GROUP BY oid"
    made(spark, folder, sql, got)
    writers = {name: rt.writer("orders", home=folder / "home", writer=name) for name in sorted({s[0] for s in steps})}
    for number, (name, what, value, at) in enumerate(steps, 1):
        if what == "row":
            writers[name].insert([{"oid": shown(kind, value), "n": number, "rowtime": at}])
        else:
            writers[name].set_bound("oid", shown(kind, value), strict=what == "strict")
        if number in cuts or number == len(steps):
            query = made(spark, folder, sql, got).run_available(folder / "check")
    for writer in writers.values():
        writer.close()
    ledger = query.ledger["orders.oid"]
    return [(row["rowtime"], row["oid"], row["n"]) for row in got], {k: n for k, n in ledger.items() if n}


def expected(kind: str, steps: list[Step]) -> tuple[list[Any], Any]:
    within, behind = KINDS[kind]
    feed: dict[str, list[f.Item]] = {}
    for name, what, value, at in steps:
        items = feed.setdefault(name, [])
        clock = max((item.at or 0 for item in items), default=f.FIRST_INSTANT)
        items.append(f.Row(at, {"oid": value}) if what == "row" else said(clock, value + (what == "strict")))
    merged = merge(stream("orders", feed).feed)
    judged = ordered("orders.oid", merged, lambda v: v["oid"], within, behind)
    made = group_by_values(
        judged.feed, lambda v: v["oid"], lambda _: (), lambda v, _, rows: {"oid": v, "n": len(rows)},
        lambda: mark_of(merged, lambda v: v["oid"], max(within, 0), behind),
    )  # fmt: skip
    out = merge(made, keyed=True) if behind else made
    rows = [(row.at, shown(kind, row.values["oid"]), row.values["n"]) for row in f.rows_of(out[""])]
    counts = {"in": judged.rows_in, "accepted": judged.rows_in - len(judged.refused)}
    return rows, {k: n for k, n in {**counts, "BROKEN_ORDER": len(judged.refused)}.items() if n}


def agree(spark: SparkSession, folder: Path, kind: str, steps: list[Step], cuts: set[int]) -> None:
    rows, counts = run(spark, folder, kind, steps, cuts)
    wanted, wanted_counts = expected(kind, steps)
    assert [(int(at.timestamp() * 1_000_000), oid, n) for at, oid, n in rows] == wanted, steps
    assert counts == wanted_counts, steps


def some_steps(chance: random.Random, count: int) -> list[Step]:
    steps: list[Step] = [("a", "row", 0, 1), ("b", "row", 0, 1)]
    now, value = 1, 0
    for _ in range(count):
        now, value = now + chance.choice([0, 1, 1]), max(0, value + chance.choice([-1, 0, 1, 1, 2]))
        steps.append((chance.choice("aab"), chance.choice(["row", "row", "bound", "strict"]), value, now))
    return steps


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 24))])
def test_random_items_do_not_depend_on_cuts_and_restarts(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    kind, steps = list(KINDS)[seed % len(KINDS)], some_steps(chance, 8)
    cuts = {2, *chance.sample(range(3, len(steps)), 2)}
    agree(spark, tmp_path / "one", kind, steps, {2})
    agree(spark, tmp_path / "cut", kind, steps, cuts)


SCRIPT = """CREATE STREAM orders (oid BIGINT ASCENDING, day DATE ASCENDING);
INSERT INTO orders (ROWTIME, oid, day) VALUES (TIMESTAMP '2024-01-01 10:00:00', 1, DATE '2024-01-01'),
  (TIMESTAMP '2024-01-01 10:00:01', 3, DATE '2024-01-02');
ALTER STREAM orders SET BOUND OF oid = 3 STRICT;
ALTER STREAM orders SET BOUND OF day = DATE '2024-01-02';
SELECT STREAM oid, COUNT(*) AS n FROM orders GROUP BY oid"""
DAYS = "SELECT STREAM day, COUNT(*) AS n FROM orders GROUP BY day"


def test_a_script_sets_bounds_of_several_columns_after_its_rows(spark: SparkSession, tmp_path: Path) -> None:
    got: list[dict[str, Any]] = []
    pipeline = made(spark, tmp_path, SCRIPT, got)
    pipeline.run_available(tmp_path / "check")
    made(spark, tmp_path, SCRIPT, got).run_available(tmp_path / "check")
    assert [(row["oid"], row["n"]) for row in got] == [(1, 1), (3, 1)]
    days: list[dict[str, Any]] = []
    made(spark, tmp_path, DAYS, days).run_available(tmp_path / "days")
    assert [str(row["day"]) for row in days] == ["2024-01-01"]


def test_a_bound_from_the_command_line_applies_to_the_rows_of_a_pump(spark: SparkSession, tmp_path: Path) -> None:
    got: list[dict[str, Any]] = []
    sql = f"""CREATE STREAM raw (v BIGINT); CREATE STREAM orders (oid BIGINT ASCENDING);
        INSERT INTO orders SELECT STREAM v AS oid FROM raw; {GROUPS}"""
    pipeline, home = made(spark, tmp_path, sql, got), tmp_path / "home"
    with rt.writer("orders", home=home) as log:
        log.insert([{"oid": 1, "rowtime": 1}])
    told = cli("bound", "orders", "4", "--strict", "--column", "oid", "--home", str(home))
    assert told.output == "orders: oid beyond 4 on, after the rows of writer main\n"
    with rt.writer("raw", home=home) as raw:
        raw.insert([{"v": value, "rowtime": at} for at, value in ((2, 4), (3, 5), (4, 7))])
    with rt.writer("orders", home=home) as log:
        log.set_rowtime_bound(9)
    query = pipeline.run_available(tmp_path / "check")
    assert query.ledger["orders.oid"] == {"in": 4, "accepted": 3, "BROKEN_ORDER": 1}
    assert [row["oid"] for row in got] == [1, 5]


COLUMNS = """CREATE STREAM s (a INT, b INT ASCENDING, c BOOLEAN ASCENDING, d STRING DESCENDING, e BIGINT ASCENDING,
f DOUBLE ASCENDING); SELECT STREAM a FROM s"""


def test_bounds_of_unordered_columns_are_refused(tmp_path: Path) -> None:
    text = "CREATE STREAM s (a INT, b INT ASCENDING, t TIMESTAMP{}) {};\nALTER STREAM s SET BOUND OF {} = 1"
    (problem,) = rt.check(text.format("", "", "a"))
    assert (problem.code, problem.place.line if problem.place else 0, "b" in problem.hint) == ("R143", 2, True)
    assert [p.code for p in rt.check(text.format("", "EVENT TIME (t, MODE MANUAL)", "b"))] == ["R190"]
    for found in compile_script(COLUMNS).defines:
        Home(tmp_path).define(found.name, found.as_json())
    with rt.writer("s", home=tmp_path) as log:
        for column, value, strict, code in (
            ("a", 1, False, "R143"), ("b", "x", False, "R206"), ("b", 1.5, False, "R206"), ("b", None, False, "R206"),
            ("c", True, True, "R206"), ("d", "x", True, "R206"), ("e", 2**62, False, "R206"),
            ("f", float("nan"), False, "R206"),
        ):  # fmt: skip
            with pytest.raises(Refused, match=code):
                log.set_bound(column, value, strict)
        assert log.position == 0
        log.insert([{"a": 1}])
    with rt.writer("s", home=tmp_path, writer="second") as log:
        log.insert([{"a": 1}])
    told = cli("bound", "s", "1", "--column", "b", "--home", str(tmp_path))
    assert told.exit_code == 1
    assert "R144" in told.output


def _forgets(plant: pytest.MonkeyPatch) -> None:
    plant.setattr(ordered_module.Ordered, "_remember", lambda *_: None)


def _too_early(plant: pytest.MonkeyPatch) -> None:
    plant.setattr(ordered_module, "about", lambda *given: [(w, -1, at) for w, _, at in about(*given)])


@pytest.mark.usefixtures("both_ways")
@pytest.mark.parametrize("plant", [_forgets, _too_early])
def test_a_planted_fault_is_caught(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Any
) -> None:
    steps: list[Step] = [("a", "row", 0, 1), ("a", "row", 2, 2), ("a", "strict", 2, 2), ("a", "row", 2, 3)]
    agree(spark, tmp_path / "sound", "INT STRICTLY ASCENDING", steps, set())
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        agree(spark, tmp_path / "planted", "INT STRICTLY ASCENDING", steps, set())
