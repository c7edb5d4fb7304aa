"""The pages in a browser: each over a running, a stopped and a crashed pipeline, without requests to other hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rowtime.client.home import Home
from rowtime.core.time import to_micros
from rowtime.operators.patterns.match import TAKEN_AS
from rowtime.state.checkpoint import Checkpoint
from rowtime.state.liveness import note_failure
from rowtime.web import commands as web_commands
from rowtime.web.server import Server, Settings
from rowtime.web.watched import Watched
from tests.web.browser import FLAGS, chromium
from tests.web.generated import Made

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.xdist_group("browser")
PAGES = ("graph", "timeline", "waiting", "rows", "ticks")
STATES = ("running", "stopped", "crashed")
HOSTILE = "<script>alert(1)"
IMAGES = Path(__file__).parents[2] / "docs" / "images"
IN_VIEW = "one => one.getBoundingClientRect().top >= one.closest('#detail').getBoundingClientRect().top"
KEEP = bool(os.environ.get("KEEP_SCREENSHOTS"))
"""``KEEP_SCREENSHOTS=1 make test ARGS=tests/web/test_browser.py`` writes the pictures of docs/console.md again."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not chromium():
        pytest.skip("there is no Chromium here, and Debian's package chromium cannot be installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=[*FLAGS])
        yield started
        started.close()


class Pipelines:
    """A home with a running, a stopped, a crashed and a hostile pipeline; the running one ticks on demand."""

    def __init__(self, home: Path) -> None:
        below = home / "checkpoints"
        below.mkdir(parents=True)
        for name in (*STATES, HOSTILE):
            made = Made(below / name, hostile=HOSTILE if name == HOSTILE else "")
            made.make()
        self.running = Made(below / "running")
        self.driver = Checkpoint(below / "running")
        self.driver.acquire()
        code = "import os, sys; from pathlib import Path; from rowtime.state.checkpoint import Checkpoint\n"
        code += "Checkpoint(Path(sys.argv[1])).acquire(); os._exit(9)"
        subprocess.run([sys.executable, "-c", code, str(below / "crashed")], check=False)
        note_failure(below / "crashed", OSError(f"no space left in {HOSTILE}"), 1, ended=True)
        self.ticks = 60

    def tick(self) -> None:
        """One more tick of the running pipeline."""
        self.running.put(self.ticks)
        self.ticks += 1


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipelines]:
    made = Pipelines(tmp_path_factory.mktemp("console") / "home")
    yield made
    made.driver.release()


@pytest.fixture(scope="module")
def url(pipelines: Pipelines) -> Iterator[str]:
    home = pipelines.driver.folder.parents[1]
    with Server(Watched(Home(home), ()), Settings(port=0)).beside() as found:
        yield found.rstrip("/")


class Seen:
    """The events of a page: requests to other hosts, errors, and dialogs that a script in the data would open."""

    def __init__(self, page: Page, url: str) -> None:
        self.others: list[str] = []
        self.errors: list[str] = []
        self.dialogs: list[str] = []
        page.on("request", lambda one: None if one.url.startswith(url) else self.others.append(one.url))
        page.on("pageerror", lambda one: self.errors.append(str(one)))
        page.on("console", lambda one: self.errors.append(one.text) if one.type == "error" else None)
        page.on("dialog", lambda one: (self.dialogs.append(one.message), one.dismiss()))


@pytest.fixture
def page(browser: Browser, url: str) -> Iterator[Page]:
    """A page whose events are recorded: no request to another host, no error, no dialog."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    made = context.new_page()
    seen = Seen(made, url)
    yield made
    context.close()
    assert seen.others == []
    assert seen.errors == []
    assert seen.dialogs == []


@pytest.fixture
def at(page: Page, url: str) -> Callable[[str, str], Page]:
    def opened(name: str, what: str) -> Page:
        page.goto(url)
        link = page.locator("td a", has_text=re.compile(f"^{re.escape(name)}$"))
        address = link.get_attribute("href")
        assert address is not None
        page.goto(url + address.replace("/graph", f"/{what}"))
        return page

    return opened


def shoot(page: Page, name: str) -> None:
    if KEEP:
        IMAGES.mkdir(exist_ok=True)
        page.screenshot(path=IMAGES / f"console-{name}.png")


def settled(page: Page, what: str) -> Page:
    """Wait until a page shows its content."""
    mark = {
        "graph": ".node",
        "timeline": "#lanes svg",
        "waiting": ".wait",
        "rows": "table.rows",
        "ticks": ".chart canvas",
    }
    page.wait_for_selector(mark[what], timeout=30_000)
    return page


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_each_page_is_shown_over_a_running_a_stopped_and_a_crashed_pipeline(
    at: Callable[[str, str], Page], state: str
) -> None:
    for what in PAGES:
        page = settled(at(state, what), what)
        assert page.locator(".facts .state").first.inner_text() == state
        assert page.locator("nav a[aria-current=page]").inner_text().lower() == what
        if state == "stopped" and what != "timeline":
            shoot(page, what)


def test_home_shows_all_states_and_the_last_error(page: Page, url: str) -> None:
    page.goto(url)
    assert sorted(page.locator("td .state").all_inner_texts()) == ["crashed", "running", "stopped", "stopped"]
    assert f"OSError: no space left in {HOSTILE}" in page.locator(".under").inner_text()


def test_a_page_follows_a_pipeline_that_runs(at: Callable[[str, str], Page], pipelines: Pipelines) -> None:
    page = settled(at("running", "timeline"), "timeline")
    pipelines.tick()
    page.wait_for_selector(f"#lanes[data-tick='{pipelines.ticks - 1}']", timeout=15_000)
    page.locator("#facts dd", has_text=re.compile(f"^{pipelines.ticks - 1}$")).wait_for()


def test_the_graph_marks_the_holder_and_opens_a_box_by_keyboard(at: Callable[[str, str], Page]) -> None:
    page = settled(at("stopped", "graph"), "graph")
    assert "Writer door-00002 of doors holds the output per_minute" in page.locator("#blame").inner_text()
    assert page.locator(".edge.holds").count() == 6
    page.locator("[data-name='per_minute.group']").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#detail .uplot")
    text = page.locator("#detail").inner_text()
    assert "FLOOR(ROWTIME TO MINUTE): ascending" in text
    assert "CREATE PUMP per_minute" in page.locator(".script .on").first.inner_text()
    assert page.locator("#detail h2").evaluate(IN_VIEW), "a box opens at its beginning"
    assert page.locator(".script .on").first.evaluate("line => line.offsetTop >= line.parentElement.scrollTop")
    shoot(page, "box")
    page.keyboard.press("Escape")
    assert page.locator("#detail").is_hidden()


def test_the_scrubber_goes_back_and_on_and_plays(at: Callable[[str, str], Page]) -> None:
    page = settled(at("stopped", "timeline"), "timeline")

    def tick(number: int) -> None:
        page.wait_for_selector(f"#lanes[data-tick='{number}']", timeout=15_000)

    tick(59)
    for number in (58, 57, 56):
        page.keyboard.press("ArrowLeft")
        tick(number)
    page.keyboard.press("ArrowRight")
    tick(57)
    page.keyboard.press("Home")
    tick(0)
    page.locator("#scrubber").fill("30")
    tick(30)
    page.keyboard.press("Tab")
    page.locator("#play").click()
    page.wait_for_selector(", ".join(f"#lanes[data-tick='{number}']" for number in range(32, 60)), timeout=15_000)
    page.locator("#play").click()
    page.keyboard.press("Shift+Tab")
    page.locator("#live").click()
    tick(59)


def test_it_shows_why_an_instant_is_not_out_yet(at: Callable[[str, str], Page]) -> None:
    page = settled(at("stopped", "timeline"), "timeline")
    page.locator("#time").fill("09:15")
    page.locator("#time").press("Enter")
    page.wait_for_selector(".why.behind")
    assert "writer door-00002 of doors stands at 2026-03-02 09:13:40" in page.locator("#why").inner_text()
    behind = page.locator(".lane-name.behind").evaluate_all("found => found.map((one) => one.firstChild.textContent)")
    assert behind == ["doors", "per_minute.group", "per_minute", "per_minute.sink"]
    shoot(page, "why")
    page.locator("#time").fill("<b>soon")
    page.locator("#time").press("Enter")
    assert "<b>soon is no time" in page.locator("#why").inner_text()


def test_a_statement_is_copied(at: Callable[[str, str], Page]) -> None:
    page = settled(at("stopped", "waiting"), "waiting")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.locator(".wait", has_text="per_minute.group").locator("[data-copy]").last
    button.click()
    page.wait_for_selector("text=Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "rowtime bound doors '<time>' --writer 'door-00002'"


def test_rows_are_filtered_by_keyboard(at: Callable[[str, str], Page]) -> None:
    page = settled(at("stopped", "rows"), "rows")
    page.keyboard.press("/")
    page.keyboard.type("n = 101")
    page.keyboard.press("Enter")
    page.wait_for_url("**filter=n*")
    assert page.locator("tr.pick").count() == 13
    page.locator("tr.pick a").first.click()
    assert page.locator("button.primary").inner_text() == "Trace this row"


def traced(operator: str, number: int | None, made_of: Sequence[int], at: str, **columns: Any) -> dict[str, Any]:
    """A line of ``rowtime trace --json``; without a number it is a bound."""
    if number is None:
        return {"operator": operator, "tick": 8, "kind": "bound", "at": at}
    row = {"operator": operator, "tick": 8 - number % 3, "kind": "row", "at": at, "columns": columns}
    return {**row, "id": number, "made_of": [*made_of]}


def lines(device: str) -> list[dict[str, Any]]:
    """The sources of a row of the output: a reading from the T-sort, two rows of doors, and the bounds."""
    times = ["09:02:05", "09:02:20", "09:02:41"]
    found = [traced("per_minute.sink", 0, [1], "09:03:00", m="09:02:00", device=device, n=3)]
    found += [traced("per_minute.arranged", 1, [2], "09:03:00", m="09:02:00", device=device, n=3)]
    found += [traced("per_minute", 2, [3], "09:03:00", m="09:02:00", device=device, n=3)]
    found += [traced("per_minute.group", 3, [4, 5, 6], "09:03:00", m="09:02:00", device=device, n=3)]
    found += [traced("seen.union", 4 + n, [7 + n], at, device=device) for n, at in enumerate(times)]
    found += [traced("seen.1.select", 7, [10], times[0], device=device)]
    found += [traced("seen.2.select", 8 + n, [11 + n], at, device=device) for n, at in enumerate(times[1:])]
    found += [traced("sorted", 10, [13], times[0], device=device, value=1.5)]
    found += [traced("doors", 11 + n, [], at, device=device, open=not n) for n, at in enumerate(times[1:])]
    found += [traced("sorted.select", 13, [14], times[0], device=device, value=1.5)]
    found += [traced("readings", 14, [], times[0], device=device, t=times[0], value=1.5)]
    names = dict.fromkeys(item["operator"] for item in found)
    return [*found, *(traced(name, None, [], "09:03:00") for name in names)]


class Ran:
    """A command that has found one row."""

    returncode, stderr = 0, ""
    stdout = "\n".join(map(json.dumps, lines(HOSTILE)))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The command that the console would have run."""
    found: list[list[str]] = []
    monkeypatch.setattr(web_commands.subprocess, "run", lambda command, **_: found.append(command) or Ran)
    return found


def test_a_trace_is_begun_by_a_button(at: Callable[[str, str], Page], commands: list[list[str]]) -> None:
    page = settled(at("stopped", "rows"), "rows")
    page.locator("tr.pick a").first.click()
    page.locator("button.primary").click()
    page.wait_for_selector("#trace-graph svg")
    assert HOSTILE in page.locator(".level").first.inner_text()
    assert [command[3] for command in commands] == ["trace"]
    assert page.locator("#trace-graph .edge:not(.bounds)").count() == 14
    assert page.locator("#trace-graph .edge.bounds").count() == 10
    row = page.locator("#trace-graph .item[data-ids='14']")
    row.focus()
    assert page.locator("#trace-graph .edge.on").count() == 8, "the way of one reading, up to the output"
    page.keyboard.press("Enter")
    assert page.locator("tr.on").get_attribute("data-id") == "14"


def test_a_trace_shows_as_which_variables_rows_were_taken(
    at: Callable[[str, str], Page], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The column of a match (`operators.patterns.match.TAKEN_AS`), whose name is that of no column of a stream."""
    taken = f"A 2024-01-01 09:02:05, B 2024-01-01 09:02:20, {HOSTILE} 2024-01-01 09:02:41"
    found = lines("sensor-00002")
    next(row for row in found if row["operator"] == "per_minute.group")["columns"][TAKEN_AS] = taken

    class Found(Ran):
        stdout = "\n".join(map(json.dumps, found))

    monkeypatch.setattr(web_commands.subprocess, "run", lambda *_, **__: Found)
    page = settled(at("stopped", "rows"), "rows")
    page.locator("tr.pick a").nth(2).click()
    page.locator("button.primary").click()
    page.wait_for_selector("#trace-graph svg")
    step = page.locator(".step[data-name='per_minute.group']")
    heads = step.locator("th").all_inner_texts()
    assert heads[-1].lower() == TAKEN_AS
    assert step.locator("tr[data-id='3'] td").all_inner_texts()[len(heads) - 1] == taken
    assert page.locator("th", has_text=re.compile(f"^{TAKEN_AS}$", re.IGNORECASE)).count() == 1


def test_boxes_of_a_trace_do_not_overlap(at: Callable[[str, str], Page], monkeypatch: pytest.MonkeyPatch) -> None:
    class Found(Ran):
        stdout = "\n".join(map(json.dumps, lines("sensor-00002")))

    monkeypatch.setattr(web_commands.subprocess, "run", lambda *_, **__: Found)
    page = settled(at("stopped", "rows"), "rows")
    page.locator("tr.pick a").nth(1).click()
    page.locator("button.primary").click()
    page.wait_for_selector("#trace-graph svg")
    shoot(page, "trace")
    places = page.locator("#trace-graph .traced rect").evaluate_all(
        "all => all.map((a) => Object.fromEntries(['x', 'y', 'width', 'height'].map((k) => [k, a[k].baseVal.value])))"
    )
    assert len(places) == 11
    for n, one in enumerate(places):
        for other in places[:n]:
            beside = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            above = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
            assert beside or above


def test_a_statement_is_executed_by_a_button_if_allowed(
    browser: Browser, pipelines: Pipelines, commands: list[list[str]]
) -> None:
    watched = Watched(Home(pipelines.driver.folder.parents[1]), [str(pipelines.driver.folder.parent / "stopped")])
    context = browser.new_context()
    page = context.new_page()
    with Server(watched, Settings(port=0, acts=True)).beside() as url:
        page.goto(url)
        assert "token" not in page.url
        page.goto(page.locator("td a").first.evaluate("one => one.href").replace("/graph", "/waiting"))
        form = page.locator("form.act").first
        form.locator("[name=time]").fill("2026-03-02 10:00:00")
        form.locator("[name=sure]").check()
        form.locator("button").click()
        page.wait_for_selector("h1:has-text('Done')")
        context.close()
    assert commands[0][3] == "bound"


def test_pages_are_reached_by_keys(at: Callable[[str, str], Page]) -> None:
    page = settled(at("stopped", "graph"), "graph")
    for key, what in zip("2345", PAGES[1:], strict=True):
        page.keyboard.press(key)
        page.wait_for_url(f"**/{what}")
        settled(page, what)
    page.keyboard.press("h")
    page.wait_for_selector("#pipelines")


def test_names_of_data_are_shown_and_never_run(at: Callable[[str, str], Page]) -> None:
    for what in PAGES:
        page = settled(at(HOSTILE, what), what)
        if what == "graph":
            assert f"Writer {HOSTILE}door-00002" in page.locator("#blame").inner_text()
            page.locator("[data-name=doors]").click()
            page.wait_for_selector("#detail td")
            assert f"{HOSTILE}door-00002" in page.locator("#detail").inner_text()
        if what == "rows":
            assert f"{HOSTILE}sensor-00002" in page.locator("table.rows").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_in_dark_and_in_light(browser: Browser, url: str, scheme: Any) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme=scheme)
    page = context.new_page()
    page.goto(url)
    address = page.locator("td a", has_text="stopped").get_attribute("href")
    assert address is not None
    for what in ("", *PAGES):
        if what:
            page.goto(url + address.replace("/graph", f"/{what}"))
            settled(page, what)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390, f"{what or 'home'} is wider than the phone"
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (dark == "rgb(18, 23, 22)") is (scheme == "dark")
        if (what, scheme) == ("timeline", "dark"):
            shoot(page, "phone")
    context.close()


@pytest.mark.slow
def test_ten_thousand_writers_are_shown_within_a_second(browser: Browser, tmp_path: Path) -> None:
    """Only the console's own time counts, without the browser's and that of a busy machine."""
    import time

    from starlette.testclient import TestClient

    from rowtime.web.guard import Access
    from rowtime.web.server import Console
    from tests.web.conftest import address

    below = tmp_path / "home" / "checkpoints"
    below.mkdir(parents=True)
    Made(below / "many", ticks=20, writers=10_000).make()
    watched = Watched(Home(tmp_path / "home"), ())
    client = TestClient(Console(watched, Access(port=8642)).app, base_url="http://127.0.0.1:8642")
    place = address(client, "many")
    at = to_micros("2026-03-02 09:02:00")
    for what in ("graph", "graph.json", "box?box=readings", f"timeline.json?at={at}", "waiting", "ticks", "rows.json"):
        began = time.process_time()
        assert client.get(f"{place}/{what}").status_code == 200
        assert time.process_time() - began < 1, what
    server = Server(watched, Settings(port=0))
    before = threading.active_count()
    with server.beside() as url:
        page = browser.new_page()
        page.goto(url.rstrip("/") + place + "/graph?box=readings")
        page.wait_for_selector("#detail td", timeout=30_000)
        assert "12 of 10,000" in page.locator("#detail").inner_text()
        page.close()
    assert threading.active_count() - before < 60
