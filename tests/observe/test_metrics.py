"""Metrics: right values, in a page that Prometheus accepts; the number of series does not depend on writers."""

from __future__ import annotations

import http.client
import json
import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.core.time import BEGINNING, END, SECOND, to_micros
from rowtime.observe import metrics
from rowtime.observe.metrics import FAMILIES, Metrics, metrics_at, values_of
from rowtime.observe.observer import Run
from rowtime.operators.contract.lateness import Lateness
from rowtime.plan.program import compile_script
from rowtime.runtime.retries import Retries
from rowtime.state.costs import JOBS, SINKS, TickCost
from tests.observe.conftest import SQL, Ran
from tests.observe.prometheus import Prometheus, programs, promtool

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "docs/monitoring"
PLAN = compile_script(SQL).described()
NOW = to_micros("2024-01-01 11:00:00")
AT = to_micros("2024-01-01 10:00:00")
LATENESS = Lateness.of(np.array([SECOND, 2 * SECOND, 90 * SECOND], np.int64)).as_json()


def entry_of(writers: int) -> dict[str, Any]:
    """The clocks of a pipeline whose slowest writer is the first; each is a second ahead of the one before."""
    clocks = {f"w{n:05}": AT + n * SECOND for n in range(writers)}
    return {
        "tick": 7,
        "at": NOW - 5 * SECOND,
        "control": {"query.result": {"sequence": 12}, "sorted": {"lateness": LATENESS}},
        "segments": {"query.group/state": [["state/a", 10, AT, AT, 0, 4000], ["state/b", 5, AT, AT, 0]]},
        "totals": {"sorted": {"in": 100, "accepted": 97, "LATE": 3}},
        "clocks": {"trades": clocks, "sorted": clocks, "query.group": {"": AT}, "query.result": {"": AT}},
        "held": {"query.group/state": 15},
        "since": {"query.group": [AT, NOW - 400 * SECOND]},
        "sources": {"trades": {"offsets": dict.fromkeys(clocks, 1), "away": {}}},
        "cost": {"ms": {}, "left": {"trades": [12, "versions"]}},
    }


def run_of(entry: dict[str, Any], folder: str = "/checkpoints/by_minute") -> Run:
    engine: Any = SimpleNamespace(plan=PLAN, entry=entry, clock=lambda: NOW, checkpoint=SimpleNamespace(folder=folder))
    return Run(engine, "id", folder)


def found(entry: dict[str, Any]) -> dict[tuple[str, ...], float]:
    return {(value.family.name, *value.labels): value.value for value in values_of(PLAN, entry, NOW)}


def cost(**more: Any) -> Any:
    spent = TickCost(7, 0, 0, {JOBS: 1500.0, SINKS: 500.0}, {"trades": 10}, {}, 0, 3, 4096, 2)
    return SimpleNamespace(cost=spent, **more)


def test_values_are_those_of_the_journal() -> None:
    values = found(entry_of(3))
    assert values["rowtime_bound_seconds", "trades", "stream"] == AT / SECOND
    assert values["rowtime_freshness_seconds", "query.result", "sink"] == 3600
    assert values["rowtime_held_rows", "query.group"] == 15
    assert values["rowtime_holding_seconds", "query.group", "trades", "w00000"] == 400
    assert (values["rowtime_state_rows", "query.group"], values["rowtime_state_bytes", "query.group"]) == (15, 4000)
    assert (values["rowtime_gate_rows", "sorted"], values["rowtime_refused_rows", "sorted", "LATE"]) == (100, 3)
    late = {key[2]: value for key, value in values.items() if key[:2] == ("rowtime_lateness_seconds", "sorted")}
    assert late == {"0.5": 2, "0.99": 120, "1": 90}
    assert [key[2] for key in values if key[0] == "rowtime_refused_rows"] == ["LATE"], "nothing else is a reason"
    assert values["rowtime_output_rows", "query.result"] == 12
    assert values["rowtime_backlog", "trades", "versions"] == 12
    assert values["rowtime_last_tick_timestamp_seconds",] == NOW / SECOND - 5


def test_infinite_bounds_do_not_become_misleading_numbers() -> None:
    entry = entry_of(1) | {"clocks": {"trades": {"w": BEGINNING}, "sorted": {"w": END}}, "held": {}}
    values = found(entry)
    assert values["rowtime_bound_seconds", "sorted", "t-sort"] == float("inf")
    assert values["rowtime_freshness_seconds", "sorted", "t-sort"] == 0
    assert not [key for key in values if key[0] == "rowtime_bound_seconds" and key[1] == "trades"]


def test_series_do_not_grow_with_writers_and_the_slowest_are_named() -> None:
    few, many = found(entry_of(10)), found(entry_of(10_000))
    assert len(few) == len(many)
    named = {key[2]: value for key, value in many.items() if key[0] == "rowtime_writer_behind_seconds"}
    assert named == {f"w{n:05}": 9_999 - n for n in range(5)}
    assert many["rowtime_writers", "trades"] == 10_000
    assert many["rowtime_other_writers_behind_seconds", "trades"] == sum(range(9_999 - 4))


def test_a_page_over_ten_thousand_writers_takes_less_than_a_second() -> None:
    metrics = Metrics()
    metrics.started(run_of(entry_of(10_000)))
    began = time.perf_counter()
    page = text_of(metrics)
    assert time.perf_counter() - began < 1
    assert len(page) < 30_000


def text_of(metrics: Metrics) -> str:
    from prometheus_client.exposition import generate_latest

    return generate_latest(metrics.registry).decode()


@pytest.fixture
def busy() -> Iterator[Metrics]:
    """All metrics, at a free port."""
    metrics, run = Metrics(0), run_of(entry_of(8))
    metrics.started(run)
    metrics.ticked(run, cost(), {})
    retries = Retries()
    retries.failed(OSError("no"))
    metrics.failed(run, retries)
    yield metrics
    metrics.close()


def test_the_page_has_every_metric_with_its_labels(busy: Metrics) -> None:
    page = text_of(busy)
    for family in FAMILIES:
        labels = ",".join(f'{name}="[^"]*"' for name in sorted(family.all_labels))
        assert re.search(rf"^{family.sample}{{{labels}}} [-+\d.e]+$", page, re.MULTILINE), family
        assert f"# TYPE {family.sample} {family.kind}" in page
    assert 'rowtime_tick_seconds_total{part="jobs",pipeline="by_minute"} 1.5' in page
    assert 'rowtime_retrying{pipeline="by_minute"} 1.0' in page
    busy.ticked(next(iter(busy._runs.values())).run, cost(), {})
    assert 'rowtime_retrying{pipeline="by_minute"} 0.0' in text_of(busy)


def test_the_page_is_served_in_the_openmetrics_format(busy: Metrics) -> None:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    asked = http.client.HTTPConnection("127.0.0.1", busy.port, timeout=10)
    asked.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text"})
    page = asked.getresponse().read().decode()
    asked.close()
    assert page.endswith("# EOF\n")
    assert {family.name for family in text_string_to_metric_families(page)} == {family.name for family in FAMILIES}


def test_names_from_data_are_text() -> None:
    metrics, entry = Metrics(), entry_of(1)
    entry["clocks"]["trades"] = {'w"} 1\nx{a="': AT, "\ud800": AT + 1}
    metrics.started(run_of(entry))
    page = text_of(metrics)
    assert 'writer="w\\"} 1\\nx{a=\\""' in page
    assert 'writer="?"' in page


def test_several_pipelines_share_one_page() -> None:
    metrics = Metrics()
    runs = [run_of(entry_of(1), folder) for folder in ("/a/one", "/a/two", "/b/one")]
    for run in runs:
        metrics.started(run)
    found = set(re.findall(r'rowtime_writers{pipeline="([^"]+)"', text_of(metrics)))
    assert found == {"one", "two", "/b/one"}
    metrics.ended(runs[0], None)
    assert 'pipeline="one"' not in text_of(metrics)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_the_metrics_of_a_run_are_there_as_long_as_it_runs(ran: Ran) -> None:
    port = free_port()
    query = ran.pipeline.start(ran.folder / "check", interval=0.01, metrics=port)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            page = answer.read().decode()
    finally:
        query.stop()
    late = query.ledger["sorted"]["LATE"]
    assert f'rowtime_refused_rows_total{{gate="sorted",pipeline="check",reason="LATE"}} {late}.0' in page
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_port_in_use_is_refused_before_anything_starts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.sql").write_text("CREATE STREAM s (n INT); SELECT STREAM n FROM s")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        asked = ["--available-now", "--home", "home", "--metrics-port", str(port)]
        done = CliRunner().invoke(app, ["run", "one.sql", *asked])
    assert done.exit_code == 1
    assert f"R611 metrics cannot be served at 127.0.0.1:{port}: Address already in use" in done.stderr
    assert not (tmp_path / "home/checkpoints").exists()


def test_a_start_that_fails_gives_its_port_back(tmp_path: Path) -> None:
    port = free_port()
    with pytest.raises(rt.Refused, match="R134"):
        rt.Pipeline(home=tmp_path).sql("CREATE STREAM s (n INT)").run_available(tmp_path / "check", metrics=port)
    Metrics(port).close()


@pytest.mark.parametrize("asked", ["here", "70000", ":-1", "127.0.0.1:"])
def test_an_invalid_port_is_refused(asked: str) -> None:
    with pytest.raises(rt.Refused, match=r"R611 .* is not a port for metrics"):
        metrics_at(asked)


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    with pytest.raises(rt.Refused, match=r"R610 .*\n.*rowtime\[metrics\]"):
        Metrics(0)


# -- Debian's Prometheus ----------------------------------------------------------------


@pytest.fixture
def _has_prometheus() -> None:
    if not programs():
        pytest.skip("Prometheus is not installed, and scripts/setup_prometheus.sh could not install it")


needs_prometheus = pytest.mark.usefixtures("_has_prometheus")


@needs_prometheus
def test_promtool_finds_nothing_wrong_with_the_page(busy: Metrics) -> None:
    said = promtool("check", "metrics", text=text_of(busy))
    assert (said.returncode, said.stdout, said.stderr) == (0, "", "")


@needs_prometheus
def test_the_alerts_are_rules_and_fire_when_they_should(tmp_path: Path) -> None:
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", str(MONITORING / "alerts.yml"))
    assert said.returncode == 0, said.stderr
    tests = tmp_path / "tests.yml"
    rules = {"rule_files": [str(MONITORING / "alerts.yml")], "evaluation_interval": "1m"}
    tests.write_text(yaml.safe_dump({**rules, "tests": [FIRES, RESTS]}))
    said = promtool("test", "rules", str(tests))
    assert said.returncode == 0, said.stdout + said.stderr
    wrong = {**FIRES, "alert_rule_test": [{**one, "exp_alerts": []} for one in FIRES["alert_rule_test"]]}
    tests.write_text(yaml.safe_dump({**rules, "tests": [wrong]}))
    said = promtool("test", "rules", str(tests))
    assert (said.stdout + said.stderr).count("alertname:") == 3, "each of them fires"


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    shown = ", ".join(f'{label}="{value}"' for label, value in {"pipeline": "p", **labels}.items())
    return {"series": f"{name}{{{shown}}}", "values": values}


def fires(name: str, at: str, **labels: str) -> dict[str, Any]:
    severity = "critical" if name == "RowtimeRetrying" else "warning"
    annotations = ANNOTATIONS[name]
    alert = {"exp_labels": {"pipeline": "p", "severity": severity, **labels}, "exp_annotations": annotations}
    return {"eval_time": at, "alertname": name, "exp_alerts": [alert]}


ANNOTATIONS = {
    "RowtimeWriterHoldsStream": {
        "summary": "p: writer phone holds trades",
        "description": "The bound of trades has not advanced for 6m 0s, and rows wait for it. "
        "`rowtime status --waiting` says what releases them.",
    },
    "RowtimeManyLateRows": {
        "summary": "p: 2% of the rows at sorted are LATE",
        "description": "More than 1 % of the rows of the last ten minutes were refused as LATE. They are in "
        "sorted.rejected. A greater WITHIN would keep more of them, and results would come later.",
    },
    "RowtimeRetrying": {
        "summary": "p: a tick fails, 3 attempts so far",
        "description": "Nothing is lost, and nothing comes out until an attempt succeeds. The log has the traceback.",
    },
}
FIRES = {
    "interval": "1m",
    "input_series": [
        series("rowtime_holding_seconds", "0+60x20", operator="q", stream="trades", writer="phone"),
        series("rowtime_refused_rows_total", "0+2x20", gate="sorted", reason="LATE"),
        series("rowtime_refused_rows_total", "0+50x20", gate="sorted", reason="EARLY"),
        series("rowtime_gate_rows_total", "0+100x20", gate="sorted"),
        series("rowtime_retrying", "0 1 2 3 3 3 3"),
    ],
    "alert_rule_test": [
        fires("RowtimeWriterHoldsStream", "6m", stream="trades", writer="phone"),
        fires("RowtimeManyLateRows", "12m", gate="sorted"),
        fires("RowtimeRetrying", "3m"),
    ],
}
RESTS = {
    "interval": "1m",
    "input_series": [
        series("rowtime_holding_seconds", "0+60x4 0+60x4 0+60x4", operator="q", stream="trades", writer="phone"),
        series("rowtime_holding_seconds", "0+60x20", operator="q", stream="trades", writer=""),
        series("rowtime_refused_rows_total", "0+1x20", gate="sorted", reason="LATE"),
        series("rowtime_gate_rows_total", "0+100x20", gate="sorted"),
        series("rowtime_retrying", "0 1 0 1 0 1 0 1 0 1 0 1 0 1 0"),
    ],
    "alert_rule_test": [
        {"eval_time": at, "alertname": name, "exp_alerts": []} for at in ("4m", "9m", "13m") for name in ANNOTATIONS
    ],
}


def expressions() -> list[str]:
    """The queries of the dashboard, as Grafana sends them."""
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return [text.replace("$pipeline", ".*").replace("$__rate_interval", "30s") for text in found]


def test_alerts_and_dashboard_use_existing_metrics_and_labels() -> None:
    known = {family.sample: set(family.all_labels) for family in FAMILIES}
    asked = [*expressions(), (MONITORING / "alerts.yml").read_text()]
    for text in asked:
        for name, labels in re.findall(r"\b(rowtime_\w+)(?:{([^}]*)})?", text):
            assert set(re.findall(r"(\w+)\s*(?:=~|!=|=)", labels)) <= known[name], text
    shown = set(re.findall(r"\browtime_\w+", "".join(asked)))
    unused = {family.sample for family in FAMILIES} - shown
    assert unused == {
        metrics.BOUND.sample, metrics.OTHERS_BEHIND.sample, metrics.LAST_TICK.sample,
        metrics.JOBS.sample, metrics.TASKS.sample, metrics.SHUFFLED.sample,
        metrics.FILES.sample, metrics.BYTES.sample, metrics.RETRIES.sample,
    }  # fmt: skip


@pytest.mark.slow
@needs_prometheus
def test_prometheus_answers_every_question_of_the_dashboard(busy: Metrics, tmp_path: Path) -> None:
    assert busy.port is not None
    with Prometheus(tmp_path, busy.port) as server:
        server.wait_for("rowtime_writers")
        found = [server.wait_for(expression) for expression in expressions()]
    assert all("pipeline" in one["metric"] or "part" in one["metric"] for series in found for one in series)
