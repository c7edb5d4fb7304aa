"""OpenLineage: valid events with the right datasets and columns, sent only if the user asks for them."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import rowtime as rt
from rowtime.cli.main import app
from rowtime.client.home import Home
from rowtime.core.columns import ROWTIME
from rowtime.observe import lineage as lineages
from rowtime.observe.lineage import ColumnLineage, Dataset, Lineage, dataset_of
from rowtime.observe.observer import Run
from rowtime.operators.sinks.sink import Sink
from rowtime.plan.program import Program, compile_script
from tests.goldens.scripts import scripts
from tests.observe.conftest import SQL, Ran, Records
from tests.observe.openlineage_schema import FACETS, broken, schemas
from tests.observe.test_logs import records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

assert records  # a fixture

TAGS = "https://openlineage.io/spec/facets/1-0-0/TagsRunFacet.json"
STREAMS = """CREATE STREAM s (ev TIMESTAMP, k STRING, n INT, other INT);
CREATE TABLE names (k STRING, long STRING) USING parquet OPTIONS (path '/tmp/n');
CREATE VIEW v AS SELECT STREAM ev AS ROWTIME, k, n FROM s ORDER BY ev WITHIN INTERVAL '10' SECOND;
"""


def made(query: str) -> dict[str, dict[tuple[str, str], str]]:
    """The lineage of each column of a query over these streams, with its rowtime."""
    program = compile_script(STREAMS + query)
    assert program.problems == ()
    return of_sink(program.sinks[0])


def of_sink(sink: Sink) -> dict[str, dict[tuple[str, str], str]]:
    found = ColumnLineage()
    return {name: dict(found.sources_of(sink, ROWTIME if name == sink.rowtime else name)) for name in sink.columns}


def test_columns_of_a_group_are_made_from_keys_and_aggregated_columns() -> None:
    assert made(
        "SELECT STREAM FLOOR(v.ROWTIME TO MINUTE) AS m, k, SUM(n * 2) + 1 AS total, COUNT(*) AS many FROM v "
        "WHERE n > 3 GROUP BY FLOOR(v.ROWTIME TO MINUTE), k"
    ) == {
        "rowtime": {("s", "ev"): "IDENTITY"},
        "m": {("s", "ev"): "TRANSFORMATION"},
        "k": {("s", "k"): "IDENTITY"},
        "total": {("s", "n"): "AGGREGATION"},
        "many": {},
    }


def test_columns_of_joins_unions_and_windows_come_from_their_sides() -> None:
    joined = made("SELECT STREAM v.k AS one, upper(t.long) AS two FROM v JOIN names t ON v.k = t.k")
    assert joined["one"] == {("s", "k"): "IDENTITY"}
    assert joined["two"] == {("names", "long"): "TRANSFORMATION"}
    both = made("SELECT STREAM k AS a FROM v UNION ALL SELECT STREAM CAST(n AS STRING) FROM v")
    assert both["a"] == {("s", "k"): "IDENTITY", ("s", "n"): "TRANSFORMATION"}
    over = made("SELECT STREAM k, SUM(n) OVER (PARTITION BY k RANGE INTERVAL '1' MINUTE PRECEDING) AS sums FROM v")
    assert over["sums"] == {("s", "n"): "AGGREGATION"}


def test_columns_that_decide_about_rows_are_distinguished() -> None:
    def decides(query: str) -> dict[tuple[str, str], frozenset[str]]:
        return dict(ColumnLineage().decides(compile_script(STREAMS + query).sinks[0]))

    assert decides("SELECT STREAM k FROM v WHERE n > 3") == {("s", "n"): {"FILTER"}}
    joined = decides("SELECT STREAM v.n FROM v JOIN names t ON v.k = t.k")
    assert joined == {("s", "k"): {"JOIN"}, ("names", "k"): {"JOIN"}}
    grouped = decides("SELECT STREAM COUNT(*) AS c FROM v GROUP BY FLOOR(v.ROWTIME TO MINUTE), k")
    assert "GROUP_BY" in grouped["s", "k"]
    assert "GROUP_BY" in grouped["s", "ev"]
    assert ("s", "n") not in grouped
    over = decides("SELECT STREAM SUM(n) OVER (PARTITION BY k RANGE INTERVAL '1' MINUTE PRECEDING) AS c FROM v")
    assert "WINDOW" in over["s", "k"]


@pytest.mark.parametrize("name", [*scripts()][::7])
def test_lineage_of_every_kind_of_plan_ends_at_columns_of_its_sources(name: str) -> None:
    program = compile_script(scripts()[name].text, variables=scripts()[name].variables)
    columns = {(node.name, column) for node in program.operators if not node.inputs for column in node.emits().names}
    for sink in program.sinks:
        found = [place for of in of_sink(sink).values() for place in of]
        assert {*found, *ColumnLineage().decides(sink)} <= columns


@pytest.mark.parametrize("name", scripts())
def test_lineage_of_columns_agrees_with_lineage_of_rows(name: str) -> None:
    """A law: a column that equals one below, by the rule of row traces, has that column as its source."""
    program = compile_script(scripts()[name].text, variables=scripts()[name].variables)
    for node in program.operators:
        for number in range(len(node.inputs)):
            for above, below in node.link(number).same:
                column, source = above.strip("`"), below.strip("`")
                told = node.made_from(number, column) if column in node.emits().names else None
                if told is not None and source in node.inputs[number].emits().names:
                    assert source in told.columns, f"{node.kind} {node.name}: {column}"


# -- events -----------------------------------------------------------------------------


class Client:
    """Collects the events as they would be sent."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def emit(self, event: Any) -> None:
        from openlineage.client.serde import Serde

        self.events.append(json.loads(Serde.to_json(event)))


def test_events_of_a_run_are_as_the_schema_says(ran: Ran, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineages, "EVERY", 0.0)
    client = Client()
    query = ran.run([400], lineage=client)
    assert [event["eventType"] for event in client.events] == ["START", "RUNNING", "COMPLETE"]
    assert [broken(event) for event in client.events] == [[], [], []]
    assert {event["run"]["runId"] for event in client.events} == {query.runId}
    last = client.events[-1]
    assert (last["job"]["namespace"], last["job"]["name"]) == ("rowtime", "check")
    assert last["job"]["facets"]["sql"]["query"] == query.engine.program.written
    (given,), (out,) = last["inputs"], last["outputs"]
    assert given["name"] == str(ran.folder / "home" / "logs" / "trades")
    assert given["inputFacets"]["inputStatistics"]["rowCount"] == 1
    assert [field["name"] for field in given["facets"]["schema"]["fields"]] == ["ev", "k", "n"]
    written = {field["name"]: field["type"] for field in out["facets"]["schema"]["fields"]}
    assert written == {"rowtime": "TIMESTAMP", "m": "TIMESTAMP", "k": "STRING", "total": "BIGINT"}
    assert (out["namespace"], out["name"]) == ("rowtime", "check/query.result")
    total = out["facets"]["columnLineage"]["fields"]["total"]["inputFields"]
    place = {"namespace": given["namespace"], "name": given["name"], "field": "n"}
    assert [{name: one[name] for name in place} for one in total] == [place]
    assert total[0]["transformations"][0]["subtype"] == "AGGREGATION"


def test_the_schema_finds_wrong_events(ran: Ran) -> None:
    client = Client()
    ran.run([], lineage=client)
    good = json.dumps(client.events[0])
    assert broken(json.loads(good)) == []
    for change in (
        lambda event: event["run"].update(runId="seven"),
        lambda event: event.update(eventType="GOING"),
        lambda event: event["job"].pop("name"),
        lambda event: event["job"]["facets"]["sql"].pop("query"),
        lambda event: event["outputs"][0]["facets"]["columnLineage"]["fields"]["k"].update(inputFields=[{"name": "x"}]),
        lambda event: event["inputs"][0]["facets"]["schema"].update(_schemaURL="https://example.com/none"),
        lambda event: event["job"]["facets"].update(jobType=event["job"]["facets"]["sql"]),
        lambda event: event["inputs"][0]["inputFacets"]["inputStatistics"].update(rowCount="many"),
        lambda event: event["run"]["facets"]["processing_engine"].pop("version"),
        lambda event: event.update(eventTime="today"),
        lambda event: event.update(producer="rowtime"),
        lambda event: event.pop("eventTime"),
    ):
        event = json.loads(good)
        change(event)
        assert len(broken(event)) >= 1, event


def test_every_facet_that_is_sent_is_known_by_its_published_schema(spark: SparkSession, tmp_path: Path) -> None:
    """Every schema is used by an event; the client of OpenLineage adds tags, which the test below checks."""

    def fails(_: Any) -> None:
        raise ValueError("no good")

    sql = "CREATE STREAM s (n INT); INSERT INTO s (ROWTIME, n) VALUES (TIMESTAMP '2024-01-01 10:00:00', 1);"
    made = rt.Pipeline(spark, home=tmp_path / "home").sql(sql + "SELECT STREAM n FROM s").sink("result", fails)
    client = Client()
    with pytest.raises(rt.Failure):
        made.run_available(tmp_path / "check", lineage=client)
    assert [event["eventType"] for event in client.events] == ["START", "FAIL"]
    assert [broken(event) for event in client.events] == [[], []]
    sent = {facet["_schemaURL"].partition("#")[0] for event in client.events for facet in facets_of(event)}
    of_event = client.events[0]["schemaURL"].partition("#")[0]
    assert [url for url in schemas() if url not in {*sent, of_event}] == [TAGS]


def facets_of(event: dict[str, Any]) -> list[dict[str, Any]]:
    owners = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    return [facet for owner in owners for kind in FACETS for facet in owner.get(kind, {}).values()]


def test_a_run_that_fails_says_so_without_secrets(spark: SparkSession, tmp_path: Path) -> None:
    def fails(_: Any) -> None:
        raise ValueError("hunter22 is no good")

    sql = """CREATE STREAM s (n INT);
        INSERT INTO s (ROWTIME, n) VALUES (TIMESTAMP '2024-01-01 10:00:00', 1);
        SELECT STREAM n, '${password}' AS p FROM s"""
    pipeline = rt.Pipeline(spark, home=tmp_path / "home").sql(sql, {"password": "hunter22"}).sink("result", fails)
    client = Client()
    with pytest.raises(rt.Failure):
        pipeline.run_available(tmp_path / "check", lineage=client)
    failed = client.events[-1]
    assert failed["eventType"] == "FAIL"
    assert broken(failed) == []
    assert "ValueError" in failed["run"]["facets"]["errorMessage"]["message"]
    assert "hunter22" not in json.dumps(client.events)


def test_events_go_to_the_endpoint_of_openlineage_and_only_if_asked_for(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = tmp_path / "events.jsonl"
    told = {"type": "file", "log_file_path": str(sent), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(told))
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "ours")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.sql").write_text(
        "CREATE STREAM s (n INT);\nINSERT INTO s (ROWTIME, n) VALUES (TIMESTAMP '2024-01-01 10:00:00', 1);\n"
        "CREATE STREAM out (n INT) USING parquet OPTIONS (path 'out');\n"
        "CREATE PUMP p AS INSERT INTO out SELECT STREAM n FROM s"
    )
    command = ["run", "one.sql", "--available-now", "--home", "home"]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert not sent.exists()
    assert CliRunner().invoke(app, [*command, "--openlineage"]).exit_code == 0
    events = [json.loads(line) for line in sent.read_text().splitlines()]
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
    assert [broken(event) for event in events] == [[], []]
    assert events[0]["run"]["facets"]["tags"]["_schemaURL"].startswith(TAGS)
    assert events[0]["job"]["namespace"] == "ours"
    assert events[0]["outputs"][0]["name"] == str(tmp_path / "out")


@pytest.fixture
def idle_run() -> Run:
    program: Program = compile_script(SQL)
    types = SimpleNamespace(of=lambda node: [""] * len(node.emits().names))
    engine: Any = SimpleNamespace(program=program, checkpoint=SimpleNamespace(folder="/c/p"), types=types)
    return Run(engine, "id", "6e8ee4a4-6bc5-4e4f-9b1e-2f2a0f7b5a11")


def test_a_server_that_is_slow_or_away_delays_no_tick(
    idle_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: Records
) -> None:
    monkeypatch.setattr(lineages, "PATIENCE", 0.05)
    release, client = threading.Event(), SimpleNamespace(emit=lambda _: release.wait(30))
    began = time.monotonic()
    slow = Lineage(Home(tmp_path), client)
    slow.started(idle_run)
    slow.ended(idle_run, None)
    assert time.monotonic() - began < 5
    release.set()

    def away(_: Any) -> None:
        raise ConnectionRefusedError("no server")

    gone = Lineage(Home(tmp_path), SimpleNamespace(emit=away))
    gone.started(idle_run)
    gone.ended(idle_run, None)
    assert "no server" in records.of("lineage")[0].getMessage()


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openlineage.client", None)
    with pytest.raises(rt.Refused, match=r"R610 .*\n.*rowtime\[openlineage\]"):
        Lineage(Home(tmp_path))


@pytest.mark.parametrize(
    ("kind", "options", "found"),
    [
        ("parquet", {"path": "/data/out"}, Dataset("file", "/data/out")),
        ("delta", {"path": "s3://lake/tables/t"}, Dataset("s3://lake", "tables/t")),
        ("kafka", {"kafka.bootstrap.servers": "a:9092,b:9092", "topic": "t"}, Dataset("kafka://a:9092", "t")),
        ("kafka", {"kafka.bootstrap.servers": "a:9092", "subscribe": "t"}, Dataset("kafka://a:9092", "t")),
        (
            "jdbc",
            {"url": "jdbc:postgresql://me:hunter2@db:5432/shop?password=hunter2", "dbtable": "public.t"},
            Dataset("postgres://db:5432", "shop.public.t"),
        ),
        (
            "iceberg",
            {"catalog.uri": "http://me:x@rest:8181?token=y", "table": "db.t"},
            Dataset("iceberg://http://rest:8181", "db.t"),
        ),
        ("function", {"function": "f"}, Dataset("jobs", "job/n")),
    ],
)
def test_datasets_have_the_names_that_others_give_them(
    kind: str, options: dict[str, str], found: Dataset, tmp_path: Path
) -> None:
    assert dataset_of("n", kind, options, Home(tmp_path), Dataset("jobs", "job")) == found


def test_the_dataset_of_a_stream_log_is_its_folder(tmp_path: Path) -> None:
    log = dataset_of("s", "log", {}, Home(tmp_path), Dataset("jobs", "job"))
    assert log == dataset_of("p.sink", "log", {"stream": "s"}, Home(tmp_path), Dataset("jobs", "job"))
    assert log.name.startswith(str(tmp_path))
