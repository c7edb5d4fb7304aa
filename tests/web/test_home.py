"""Home: every pipeline with its state, and pipelines that cannot be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtime.state.checkpoint import Checkpoint
from rowtime.state.liveness import note_failure
from tests.web.conftest import address
from tests.web.generated import Made, as_newer

if TYPE_CHECKING:
    from starlette.testclient import TestClient


def shown(client: TestClient) -> str:
    """The page as text."""
    import re

    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", client.get("/").text))


def test_a_pipeline_is_shown_with_its_rows_and_its_freshness(console: Callable[..., TestClient]) -> None:
    text = shown(console())
    assert "factory" in text
    assert " stopped 6,180 39 22 371 " in text


def test_a_driver_at_work_a_failing_one_and_a_crashed_one_are_distinguished(
    console: Callable[..., TestClient], home: Path
) -> None:
    driver = Checkpoint(home / "checkpoints" / "factory")
    driver.acquire()
    client = console()
    assert " running " in shown(client)
    note_failure(driver.folder, OSError("no space left"), 3, ended=False)
    assert " retrying attempt 3 " in shown(client)
    assert "OSError: no space left" in shown(client)
    note_failure(driver.folder, OSError("no space left"), 4, ended=True)
    driver.release()
    assert " crashed " in shown(client)


def test_a_home_without_pipelines_says_how_to_start_one(console: Callable[..., TestClient], home: Path) -> None:
    (home / "checkpoints").rename(home / "elsewhere")
    assert "There is no pipeline below" in shown(console())


def test_a_part_that_was_seen_is_not_sent_again(console: Callable[..., TestClient]) -> None:
    client = console()
    text = client.get("/part/home").text
    again = text[text.index("/part/home?seen=") :].split('"', 1)[0]
    assert client.get(again).status_code == 204


def test_a_folder_that_is_no_checkpoint_is_reported_with_a_code(
    console: Callable[..., TestClient], tmp_path: Path
) -> None:
    (tmp_path / "else").mkdir()
    (tmp_path / "else" / "rows.csv").write_text("a,b\n")
    client = console(str(tmp_path / "else"), str(tmp_path / "nowhere"))
    assert shown(client).count("R405 ") == 2
    answer = client.get(f"{address(client, 'else')}/graph")
    assert (answer.status_code, "R405" in answer.text) == (422, True)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("page", ["graph", "timeline", "waiting", "rows", "ticks"])
def test_each_page_says_that_a_plan_is_of_a_newer_version(
    console: Callable[..., TestClient], home: Path, page: str
) -> None:
    path = home / "checkpoints" / "factory" / "plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 99}))
    client = console()
    assert "R402" in client.get(f"{address(client, 'factory')}/{page}").text


def test_a_checkpoint_of_a_newer_version_is_reported_with_a_code(
    console: Callable[..., TestClient], home: Path
) -> None:
    as_newer(home / "checkpoints" / "factory")
    client = console()
    assert "R402" in shown(client)
    assert "R402" in client.get(f"{address(client, 'factory')}/graph").text


def test_a_half_written_entry_is_reported_and_the_others_are_shown(
    console: Callable[..., TestClient], home: Path
) -> None:
    path = home / "checkpoints" / "factory" / "journal" / f"{30:012d}.json"
    path.write_bytes(path.read_bytes()[:200])
    client = console()
    text = client.get(f"{address(client, 'factory')}/graph").text
    assert "R406" in text
    assert "000000000030.json has changed since rowtime wrote it" in text
    assert "Restore the file, or the whole checkpoint, from a copy." in text


def test_if_the_newest_entry_is_damaged_the_one_before_it_is_shown(
    console: Callable[..., TestClient], home: Path
) -> None:
    last = home / "checkpoints" / "factory" / "journal" / f"{59:012d}.json"
    whole = last.read_bytes()
    last.write_bytes(whole[:200])
    client = console()
    text = shown(client)
    assert " stopped 6,077 " in text, "as it was after tick 58"
    assert (
        f"R406 {last} has changed since rowtime wrote it: its checksum differs. "
        "The pages show it as it was after tick 58." in text
    )
    place = address(client, "factory")
    for page in ("graph", "timeline", "waiting", "rows", "ticks"):
        answer = client.get(f"{place}/{page}")
        assert (answer.status_code, "The pipeline does not start before this is repaired." in answer.text) == (
            200,
            True,
        )
    assert client.get(f"{place}/graph.json").json()["tick"] == 58
    assert client.get(f"{place}/timeline.json").json()["steps"][-1] == 58
    assert client.get(f"{place}/timeline.json?tick=30").json()["tick"] == 30
    last.write_bytes(whole)
    assert "R406" not in shown(client), "somebody has restored it"
    assert client.get(f"{place}/graph.json").json()["tick"] == 59


def test_a_journal_without_a_whole_entry_cannot_be_shown(console: Callable[..., TestClient], home: Path) -> None:
    for path in (home / "checkpoints" / "factory" / "journal").glob("*.json"):
        path.write_bytes(b"{}")
    client = console()
    assert "R406" in shown(client)
    assert client.get(f"{address(client, 'factory')}/graph").status_code == 422


def test_there_is_a_page_for_unknown_addresses(console: Callable[..., TestClient]) -> None:
    for path in ("/nowhere", "/p/nobody/graph"):
        answer = console().get(path)
        assert (answer.status_code, "R704" in answer.text) == (404, True)


def test_names_are_shown_as_they_are_and_never_as_markup(console: Callable[..., TestClient], home: Path) -> None:
    bad = "<img src=x onerror=alert(1)>"
    Made(home / "checkpoints" / bad, ticks=3, hostile="<script>alert(2)").make()
    client = console()
    text = client.get("/").text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    assert "<img" not in text
    place = address(client, "img-src-x-onerror-alert-1")
    assert "Writer <script>alert(2)sensor" in client.get(f"{place}/graph.json").json()["blame"]
    assert "&lt;script&gt;alert(2)" in client.get(f"{place}/box", params={"box": "doors"}).text
