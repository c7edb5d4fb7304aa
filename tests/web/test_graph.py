"""Graph: the texts on boxes and edges, the blamed operator, and the details of an open box."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from rowtime.plan.program import compile_script
from rowtime.web.moments import Moment
from rowtime.web.views.graph import FILTERED, UNTOLD, graph
from tests.web.conftest import address

if TYPE_CHECKING:
    from starlette.testclient import TestClient


@pytest.fixture
def client(console: Callable[..., TestClient]) -> TestClient:
    made = console()
    made.base_url = str(made.base_url).rstrip("/") + address(made, "factory")
    return made


def test_the_way_to_the_writer_that_holds_everything_is_marked(client: TestClient) -> None:
    found = client.get("/graph.json").json()
    assert found["blame"] == "Writer door-00002 of doors holds the output per_minute at 2026-03-02 09:13:00."
    marked = [(edge["from"], edge["to"]) for edge in found["edges"] if edge["holds"]]
    assert ("doors", "seen.2.select") in marked
    assert ("seen.union", "per_minute.group") in marked
    assert not [edge for edge in marked if "readings" in edge or "sorted" in edge]
    assert {edge["who"] for edge in found["edges"]} == {"", "door-00002"}


def test_an_edge_has_its_bound_the_rows_of_the_last_ticks_and_the_rows_held_behind_it(client: TestClient) -> None:
    edges = {(edge["from"], edge["to"]): edge for edge in client.get("/graph.json").json()["edges"]}
    sort = edges["sorted.select", "sorted"]
    assert (sort["bound"], sort["held"], sort["writers"]) == ("2026-03-02 09:19:58", 350, 3)
    assert edges["readings", "sorted.select"]["rows"] == 1_000
    assert edges["sorted", "seen.1.select"]["rows"] == 996


def test_an_edge_without_a_count_says_why(client: TestClient) -> None:
    found = client.get("/graph.json").json()["edges"]
    assert {bool(edge["uncounted"]) for edge in found if edge["rows"] is not None} == {False}
    plan = compile_script("""CREATE STREAM a (n INT);
        CREATE VIEW twice AS SELECT STREAM x.n, y.n AS m FROM a AS x JOIN a AS y ON x.n = y.n;
        SELECT STREAM n, COUNT(*) AS c FROM (SELECT STREAM n FROM twice WHERE m > 1) AS t
          GROUP BY FLOOR(t.ROWTIME TO MINUTE), n""").described()
    entry = {"tick": 0, "clocks": {}, "totals": {}, "segments": {}}
    moment = Moment(0, 0, {}, {"a": {"in": 5, "accepted": 5}}, {}, {})
    edges = {edge["from"]: edge["uncounted"] for edge in graph(plan, entry, [moment])["edges"]}
    assert edges["a"] == ""
    assert edges["twice.join"] == FILTERED
    assert edges["query.t.select"] == UNTOLD


def test_a_box_of_a_stream_says_how_much_is_left_to_read(client: TestClient) -> None:
    left = {node["name"]: node["left"] for node in client.get("/graph.json").json()["nodes"]}
    assert (left["readings"], left["doors"], left["sorted"]) == ("1,200 rows", "", "")


def test_the_graph_is_not_sent_again_while_nothing_happens(client: TestClient) -> None:
    first = client.get("/graph.json")
    assert client.get("/graph.json", headers={"if-none-match": first.headers["etag"]}).status_code == 304


def test_a_box_shows_explain_with_its_proof_and_its_sql(client: TestClient) -> None:
    text = client.get("/box", params={"box": "per_minute.group"}).text
    for term in ("Requires", "Keeps", "Emits", "Promises", "Proof"):
        assert f"<dt>{term}</dt>" in text
    assert "FLOOR(ROWTIME TO MINUTE): ascending" in text
    lines = [line for line in text.split('<span class="l')[1:] if line.startswith(" on")]
    assert len(lines) == 3
    assert "CREATE PUMP per_minute" in lines[0]


def test_a_box_of_a_stream_lists_its_slowest_writers(client: TestClient) -> None:
    text = client.get("/box", params={"box": "doors"}).text
    assert text.index("door-00002") < text.index("door-00000")


def test_a_missing_box_is_reported(client: TestClient) -> None:
    answer = client.get("/box", params={"box": "<b>"})
    assert "R704" in answer.text
    assert "&lt;b&gt;" in answer.text


def test_the_held_rows_of_a_box_are_shown_over_time(client: TestClient) -> None:
    found = client.get("/held.json", params={"box": "per_minute.group"}).json()
    assert found["x"][-1] == 59
    assert found["series"][0]["values"][-1] == 21
    assert found["series"][0]["values"][0] == 6
    size = client.get("/held.json", params={"box": "sorted", "bytes": ""}).json()
    assert [one["label"] for one in size["series"]] == ["bytes"]
    assert size["series"][0]["values"][-1] == 3_500
