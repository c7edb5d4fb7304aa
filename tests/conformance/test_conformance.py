"""Suites of other systems and random pipelines distinguish right answers from wrong ones."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from conformance import beam, beside_flink, differential, flink, flink_views, restated
from conformance.differential import Inputs, compare, difference, problems
from conformance.page import page
from conformance.pipelines import drawn
from conformance.verdicts import DIFFERENT, OUTCOMES, REFUSED, RIGHT, WRONG, Suite, Verdict, wrong
from conformance.views import View
from rowtime.operators.over import over_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def test_the_page_has_every_suite_and_nothing_is_wrong() -> None:
    rows = re.findall(
        r"^\| ([^|]+: [^|]+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE
    )
    counts = {name: [*map(int, numbers)] for name, *numbers in rows}
    for path in restated.FOLDER.glob("*.yaml"):
        head, *cases = (one for one in yaml.safe_load_all(path.read_text()) if one)
        assert counts[head["suite"]][0] == len(cases), "run make conformance ARGS=--write"
    for total, *parts, failed in counts.values():
        assert (total, failed) == (sum(parts), 0)
    assert re.search(r"\d random pipelines with [\d,]+ rows beside DuckDB, 0 wrong", PAGE.read_text())


def test_the_page_lists_reasons_with_their_counts() -> None:
    verdicts = [Verdict("a", RIGHT), Verdict("b", REFUSED, "no"), Verdict("c", REFUSED, "no"), Verdict("d", WRONG, "x")]
    text = page([Suite("S: t", "there", [*verdicts, Verdict("e", DIFFERENT, "8.3: so")])], [differential.Compared()], 1)
    assert "| S: t | 5 | 1 | 2 | 1 | 1 |" in text
    assert "- no (2 cases)\n" in text
    assert "- 8.3: so\n" in text
    assert len(OUTCOMES) == 4


def test_a_case_that_was_wrong_in_one_round_is_wrong() -> None:
    right, wrong = Verdict("a", RIGHT), Verdict("a", WRONG, "no")
    for rounds in ([wrong], [wrong, right], [right, wrong]):
        assert flink.merged([*rounds, Verdict("b", RIGHT)]) == [wrong, Verdict("b", RIGHT)]
    assert flink._plain(differential.BEGIN.replace(microsecond=20_000)) == flink._plain("2024-01-01 22:30:00.02")


def test_a_seed_gives_one_pipeline_which_check_accepts() -> None:
    made = [drawn(f"same/{number}") for number in range(6)]
    assert made == [drawn(f"same/{number}") for number in range(6)]
    refused = [problems(Inputs.of("same"), one) for one in made]
    assert sum(map(bool, refused)) <= 2, refused


def test_rows_are_compared_with_their_times_and_in_the_order_of_time() -> None:
    assert difference([(1, "a", 2.0)], [(1, "a", 2)]) is None
    assert "only in DuckDB 1" in str(difference([(1, "a")], [(1, "a"), (1, "a")]))
    assert "only in rowtime 1" in str(difference([(2, "a")], [(1, "a")]))
    assert "order" in str(difference([(2, "a"), (1, "a")], [(1, "a"), (2, "a")]))
    assert "R901" in str(difference("R901", [(1, "a")]))


def test_duckdb_computes_every_pipeline() -> None:
    inputs = Inputs.of("duck")
    answers = [differential.DuckDB().answer(inputs, drawn(f"duck/{n}")) for n in range(40)]
    assert not [found for found in answers if isinstance(found, str)]


def test_pipelines_beside_flink_are_accepted_and_their_values_are_read() -> None:
    """Without PyFlink: which cases are drawn, and how the output is parsed."""
    made = [flink_views.drawn(f"drawn/{number}") for number in range(60)]
    refused = [found for one in made if (found := problems(Inputs.of("same"), one))]
    assert len(refused) < 6, refused
    kinds = {view.kind for one in made for view in one.views}
    assert {"tumble", "hop", "session", "over", "pattern", "first rows", "projection"} <= kinds
    assert not [one for one in made if "ROWTIME" in "".join(view.theirs for view in one.views)]
    assert flink_views.in_flink("INTERVAL '90' SECOND < INTERVAL '300' SECOND") == (
        "INTERVAL '90' SECOND(3) < INTERVAL '5' MINUTE"
    )
    view = View("w", {"k": "text", "c": "dec", "day": "date", "f": "bool"}, "", "", "rows")
    read = beside_flink.values(view, ["2024-01-01 10:00:00.002", "7", "1.25", "1969-12-31", None])
    assert read == (dt.datetime(2024, 1, 1, 10, 0, 0, 2_000), "7", 1.25, dt.date(1969, 12, 31), None)  # noqa: DTZ001


def test_what_was_compared_is_noted_and_not_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(*given: Any) -> Any:
        given[-1].right["over"] += len(given[-2])
        yield from ["seed 1/1/0: x"] * (len(asked) == 1)
        given[-1].wrong += ["x"] * (len(asked) == 1)
        asked.append(given[2])

    asked: list[Any] = []
    monkeypatch.setattr(differential, "_compared", compared)
    first = compare(None, 1, 40, lambda _: None, tmp_path)  # type: ignore[arg-type]
    assert (first.count, len(asked), len(first.wrong)) == (41, 2, 1)
    again = compare(None, 1, 40, lambda _: None, tmp_path)  # type: ignore[arg-type]
    assert (again.count, len(asked), again.wrong) == (40, 3, [])  # the answer only if it differs


def test_a_first_value_of_several_is_not_asked_for() -> None:
    """Any row of several with the same time is accepted."""
    for number in range(300):
        for view in drawn(f"tie/{number}").views:
            if view.kind in ("tumble again", "hop again", "calendar again"):
                assert "_BY(" not in view.ours


@pytest.mark.slow
def test_random_pipelines_have_the_rows_of_duckdb(spark: SparkSession) -> None:
    assert not compare(spark, 5, 10).wrong


@pytest.mark.slow
def test_a_planted_fault_is_found_and_made_small(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = Inputs(Inputs.of("planted").streams, frozenset(), 3)
    found = next(one for n in range(200) if _keeps_rows(one := drawn(f"planted/{n}")) and not problems(inputs, one))
    monkeypatch.setattr(over_memory, "alive", lambda rows, _: rows.slice(0, 0))
    (differs,), _ = differential._both(spark, differential.DuckDB(), inputs, [found])
    assert differs is not None
    told = differential._shrunk(spark, differential.DuckDB(), inputs, found, differs)
    assert told.count("'rowtime':") < inputs.count / 2


def _keeps_rows(pipeline: Any) -> bool:
    return [view.kind for view in pipeline.views] == ["over"] and "UNBOUNDED PRECEDING AND CURRENT" in str(pipeline)


TRANSCRIPT: dict[str, Any] = {
    "name": "ours",
    "window_fn": "FixedWindows(10)",
    "transcript": [{"input": [1, 12, 3]}, {"watermark": 10}, {"expect": [{"window": [0, 9], "values": [1, 3]}]},
                   {"watermark": 30}, {"expect": [{"window": [10, 19], "values": [12]}]}],
}  # fmt: skip


@pytest.mark.slow
def test_a_transcript_is_right_or_wrong_or_refused(spark: SparkSession) -> None:
    assert beam.verdict(spark, TRANSCRIPT) == Verdict("ours", RIGHT)
    other = [*TRANSCRIPT["transcript"][:-1], {"expect": [{"window": [10, 19], "values": [13]}]}]
    assert beam.verdict(spark, {**TRANSCRIPT, "transcript": other}).outcome == WRONG
    assert beam.verdict(spark, {**TRANSCRIPT, "transcript": other, "error": "Unmatched output"}).outcome == RIGHT
    assert beam.verdict(spark, {**TRANSCRIPT, "error": "Unmatched output"}).outcome == WRONG
    assert beam.verdict(spark, {**TRANSCRIPT, "trigger_fn": "AfterCount(2)"}).outcome == REFUSED
    late = [*TRANSCRIPT["transcript"], {"input": [14]}, {"expect": [{"window": [10, 19], "values": [12, 14]}]}]
    assert beam.verdict(spark, {**TRANSCRIPT, "allowed_lateness": 60, "transcript": late}).outcome == DIFFERENT


def test_transcripts_are_read_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "trigger_transcripts.yaml").write_text(yaml.safe_dump_all([TRANSCRIPT, {"name": "x"}]))
    assert [one["name"] for one in beam.transcripts(tmp_path / "nowhere", tmp_path)] == ["ours", "x"]


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(restated.FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_no_published_case_is_wrong(spark: SparkSession, path: Path) -> None:
    assert wrong([restated.suite(spark, path)]) == []


def test_a_restated_case_is_wrong_if_its_rows_differ(spark: SparkSession) -> None:
    head = {"streams": "CREATE STREAM s (a INT);", "input": {"s": [["10:00:00", 1], ["10:00:05", 2]]}}
    case: dict[str, Any] = {"name": "c", "sql": "SELECT STREAM a FROM s WHERE a > 1", "expect": [["10:00:05", 2]]}
    assert restated.verdict(spark, head, case).outcome == RIGHT
    assert restated.verdict(spark, head, {**case, "rule": "5: so"}).outcome == DIFFERENT
    assert restated.verdict(spark, head, {**case, "expect": [["10:00:06", 2]]}).outcome == WRONG
    assert restated.verdict(spark, head, {**case, "refused": "R104", "because": "so"}).outcome == WRONG
    counted = {**case, "sql": "SELECT STREAM a, COUNT(*) AS n FROM s GROUP BY a", "refused": "R104", "because": "so"}
    assert restated.verdict(spark, head, counted) == Verdict("c", REFUSED, "R104: so")
