"""The matcher over many partitions at once equals the oracle, which searches for one match after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, example, find, given, settings
from hypothesis import strategies as st

import rowtime.kernels.matching.automaton as automaton_module
import rowtime.kernels.matching.matcher as matcher_module
import rowtime.kernels.matching.paths as paths_module
from rowtime.core.time import END
from rowtime.kernels.frames import Ints
from rowtime.kernels.lists import Listed
from rowtime.kernels.matching.automaton import automaton
from rowtime.kernels.matching.matcher import Clause, Matches, matches
from rowtime.kernels.matching.pattern import parse, variables
from rowtime.kernels.matching.rows import Conditions, PathCondition, Picked, Rows, Running
from rowtime.kernels.matching.running import Different, Gathered, running
from rowtime.kernels.window_functions import Distinct, Function, Sum
from tests.oracle import match_recognize as o
from tests.oracle.feed import Row
from tests.oracle.row_patterns import NAMES, patterns, text

FAR, FEW = 1_000, 4


def _conditions(kinds: dict[str, str], names: dict[str, str], values: Ints, rows: Rows) -> Conditions:
    """The conditions of the oracle as columns."""
    number = {name: n for n, name in enumerate(names)}
    of_rows, of_paths = {}, {}
    shifted = np.full(len(values) + 1, -FAR)
    shifted[:-1] = values
    at = np.arange(len(values))
    before = np.where(at > rows.begins[rows.partition], shifted[at - 1], -FAR) if len(values) else values
    after = np.where(at + 1 < rows.ends[rows.partition], shifted[at + 1], -FAR)
    aggregates: list[Running] = []
    for name in names:
        mine, kind = number[name], kinds.get(name, "any")
        if kind == "high":
            of_rows[mine] = values > 1
        elif kind == "rises":
            of_rows[mine] = (before > -FAR) & (values > before)
        elif kind == "falls after":
            of_rows[mine] = (after > -FAR) & (values > after)
        elif kind == "above first":
            of_paths[mine] = PathCondition(
                (Picked(frozenset(number.values()), last=False),), (), lambda r, p, s: values[r] >= values[p[0]]
            )
        elif kind == "above last A" and "A" in number:

            def test(r: Ints, p: Any, s: Any) -> Any:
                return (p[0] >= 0) & (values[r] > np.where(p[0] >= 0, values[p[0]], 0))

            of_paths[mine] = PathCondition(
                (Picked(frozenset({number["A"]}), last=True, offset=1 if name == "A" else 0),), (), test
            )
        elif kind == "few":
            aggregates.append(running_of(Sum(), values, mine))
            of_paths[mine] = PathCondition((), (len(aggregates) - 1,), lambda r, p, s: np.asarray(s[0]["s"]) <= FEW)
        elif kind == "two values":
            aggregates.append(running_of(Distinct(), values, mine))
            of_paths[mine] = PathCondition((), (len(aggregates) - 1,), _values(aggregates[-1], lambda n: n <= 2))
        elif kind == "a list of three":
            aggregates.append(running_of(Listed(), values, mine))
            of_paths[mine] = PathCondition(
                (), (len(aggregates) - 1,), _values(aggregates[-1], lambda v: len(v) <= 3 and v[0] <= v[-1])
            )
    tested = {n: replace(one, test=_computed(one.test)) for n, one in of_paths.items()}
    return Conditions(of_rows, tested, aggregates)


def _computed(test: Any) -> Any:
    """A test that can be computed for every row."""

    def all_of(rows: Ints, picked: Any, sums: Any) -> tuple[Any, Ints]:
        return test(rows, picked, sums), np.zeros(len(rows), np.int64)

    return all_of


def running_of(function: Function, values: Ints, variable: int) -> Running:
    """A function of the values of the rows of a variable."""
    return running(function, pa.array(values), values, frozenset({variable}))


def _values(of: Running, holds: Callable[[Any], bool]) -> Callable[..., Any]:
    return lambda r, p, s: np.array([holds(value) for value in of.value(s[0])[""].to_pylist()], np.bool_)


def _oracle_conditions(kinds: dict[str, str]) -> dict[str, Callable[[o.View], Any]]:
    def now(view: o.View, by: int = 0) -> int:
        found = view.last("v", by=by)
        return -FAR if found is None else int(found)

    def above(name: str, view: o.View) -> bool:
        found = view.last("v", "A", back=1 if name == "A" else 0)
        return found is not None and now(view) > found

    def over(name: str, kind: str) -> Callable[[o.View], Any] | None:
        return {
            "high": lambda view: now(view) > 1,
            "rises": lambda view: now(view, -1) > -FAR and now(view) > now(view, -1),
            "falls after": lambda view: now(view, 1) > -FAR and now(view) > now(view, 1),
            "above first": lambda view: now(view) >= view.first("v"),
            "above last A": lambda view: above(name, view),
            "few": lambda view: sum(view.all("v", name)) <= FEW,
            "two values": lambda view: len({*view.all("v", name)}) <= 2,
            "a list of three": lambda view: len(of := view.all("v", name)) <= 3 and of[0] <= of[-1],
        }.get(kind)

    return {name: made for name, kind in kinds.items() if (made := over(name, kind)) is not None}


KINDS = ["any", "high", "rises", "falls after", "above first", "above last A", "few", "two values", "a list of three"]


@st.composite
def cases(draw: Any) -> dict[str, Any]:
    """A pattern, its conditions, rows of a few partitions, and the other clauses."""
    pattern = draw(patterns())
    kinds = {name: draw(st.sampled_from(KINDS)) for name in NAMES}
    rows = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=7)
    parts = draw(st.lists(st.tuples(rows, st.booleans()), min_size=1, max_size=3))
    skip = draw(st.sampled_from(["past", "next", "first", "last"]))
    return {"pattern": pattern, "kinds": kinds, "parts": parts, "skip": skip, "to": draw(st.sampled_from(NAMES)),
            "within": draw(st.sampled_from([None, None, 2, 4])), "behind": draw(st.sampled_from([0, 0, 1])),
            "more": draw(st.integers(0, 3)), "whole": draw(st.booleans())}  # fmt: skip


def _check(case: dict[str, Any]) -> None:
    pattern, kinds = parse(text(case["pattern"])), case["kinds"]
    names, machine = variables(pattern), automaton(pattern)
    kinds = {name: kind for name, kind in kinds.items() if kind != "above last A" or "A" in names}
    to = frozenset(n for n, name in enumerate(names) if name == case["to"])
    if case["skip"] in ("first", "last") and (machine.lacks(to) or machine.leads(to, last=case["skip"] == "last")):
        return
    ahead = int(any(kinds.get(name) == "falls after" for name in names))
    begins, values, times = [0], [], []
    for rows, _ in case["parts"]:
        values += [v for v, _ in rows]
        times += [int(t) for t in np.cumsum([gap for _, gap in rows])]
        begins.append(len(values))
    bound = max(times, default=0) + case["more"]
    over = np.array([over for _, over in case["parts"]])
    whole = np.ones(len(over), np.bool_)
    rows = Rows(np.array(begins[:-1]), np.array(begins[1:]), np.array(times, np.int64), over, whole, bound, ahead)
    clause = Clause(machine, case["within"], case["skip"], to, case["behind"], case["whole"])
    found = matches(clause, rows, _conditions(kinds, names, np.array(values, np.int64), rows), rows.begins)
    in_turn = replace(clause, in_turn=True)
    again = matches(in_turn, rows, _conditions(kinds, names, np.array(values, np.int64), rows), rows.begins)
    for part in fields(found):  # nothing fails, so there is no difference
        assert np.asarray(getattr(again, part.name)).tolist() == np.asarray(getattr(found, part.name)).tolist()
    for n, (low, high) in enumerate(zip(begins, begins[1:], strict=False)):
        _compare(case, found, n, (low, high, rows, values, ahead, list(names), machine, kinds))


def _compare(case: dict[str, Any], found: Matches, n: int, of: Any) -> None:
    low, high, rows, values, ahead, names, machine, kinds = of
    spec = o.Spec(case["pattern"], _oracle_conditions(kinds), {}, all_rows=case["whole"], skip=case["skip"],
                  to=(case["to"],), within=case["within"], ahead=ahead, behind=case["behind"])  # fmt: skip
    part = [Row(int(rows.times[at]), {"v": values[at]}) for at in range(low, high)]
    one = _Noting(spec, part, bool(rows.over[n]), rows.bound)
    least = one.matched()
    mine = np.flatnonzero((found.starts >= low) & (found.starts < high))
    got = []
    for at in mine:
        states = found.states[found.offset[at] : found.offset[at + 1]]
        taken = tuple((names[machine.variable[s]], bool(machine.left_out[s])) for s in states)
        got.append((int(found.starts[at]) - low, taken))
    assert got == [(match.start, match.taken) for match in one.noted]
    assert min(int(found.least[n]), rows.bound) == min(least, rows.bound)


@dataclass
class _Noting(o.Partition):
    """Records the matches."""

    noted: list[o.Match] = field(default_factory=list)

    def _show(self, match: o.Match, shown: set[int]) -> None:
        self.noted.append(match)
        super()._show(match, shown)


def _case(pattern: o.Pattern, values: list[int], **more: Any) -> dict[str, Any]:
    parts = [([(v, 1) for v in values], True)]
    given = {"kinds": {}, "skip": "past", "to": "A", "within": None, "behind": 0, "more": 0, "whole": False}
    return {"pattern": pattern, "parts": parts, **given, **more}


A, B = ("var", "A"), ("var", "B")


OF_TWO_WAYS = _case(
    ("seq", [("rep", ("alt", [B, A]), 1, None, True), ("var", "C")]),
    [2, 0, 3],
    kinds={"A": "high", "C": "above last A"},
)
"""The less preferred path is in the same state, but has another row for its condition."""


OF_TWO_VALUES = _case(("rep", A, 1, None, True), [1, 2, 1, 3, 3], kinds={"A": "two values"})
OF_A_LIST = _case(("rep", A, 1, None, True), [1, 2, 1, 3, 3], kinds={"A": "a list of three"})
OF_EMPTY_TURNS = _case(("rep", ("rep", A, 0, 1, False), 0, 2, True), [1, 2, 1])
"""A repetition could match no row first, which is not needed."""


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(cases())
@example(OF_TWO_WAYS)
@example(OF_EMPTY_TURNS)
@example(OF_TWO_VALUES)
@example(OF_A_LIST)
@example(_case(("rep", ("seq", [("rep", A, 0, 1, True), ("rep", B, 0, 1, False)]), 0, None, True), [1, 2, 1]))
def test_the_matches_equal_those_of_the_oracle(case: dict[str, Any]) -> None:
    _check(case)


@settings(max_examples=150, deadline=None)
@given(case=cases(), size=st.integers(1, 3))
def test_the_matches_do_not_depend_on_how_many_starts_are_tried_at_once(case: dict[str, Any], size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matcher_module, "AT_ONCE", size)
        _check(case)


@pytest.mark.parametrize(
    ("pattern", "least"), [("A B", END), ("A B+", 0)], ids=["the failing start is skipped", "it may have its turn"]
)
def test_a_condition_that_fails_for_a_skipped_start_does_not_hold_rows(pattern: str, least: int) -> None:
    """The second row fails as a start. If the match from the first row includes it, that has no effect on the bound."""

    def test(_: Ints, picked: Any, __: Any) -> Any:
        if 1 in picked[0]:
            raise ZeroDivisionError
        return np.ones(len(picked[0]), np.bool_), np.zeros(len(picked[0]), np.int64)

    parsed = parse(pattern)
    condition = PathCondition((Picked(frozenset({0}), last=True),), (), test)
    no, yes = np.zeros(1, np.bool_), np.ones(1, np.bool_)
    rows = Rows(np.array([0]), np.array([3]), np.array([0, 1, 2]), no, yes, 2)
    clause = Clause(automaton(parsed), within=10)
    with pytest.raises(ZeroDivisionError):
        matches(clause, rows, Conditions(of_paths={1: condition}), rows.begins)
    found = matches(replace(clause, in_turn=True), rows, Conditions(of_paths={1: condition}), rows.begins)
    assert found.least.tolist() == [least]


def _later_starts_hold_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(matcher_module._Search, "_least", lambda self: np.full(len(self.begin), 2**62))


def _paths_are_told_apart_by_state_alone(patch: pytest.MonkeyPatch) -> None:
    real = paths_module._different
    patch.setattr(paths_module, "_different", lambda start, state, picks: real(start, state, picks[:0]))


def _an_empty_repetition_counts(patch: pytest.MonkeyPatch) -> None:
    real = automaton_module._Graph._once
    patch.setattr(
        automaton_module._Graph, "_once", lambda self, part, then, *, out: self.of(part, then, out=out) if real else 0
    )


def _what_is_preferred_less_goes_on(patch: pytest.MonkeyPatch) -> None:
    real = automaton_module.Follows
    patch.setattr(automaton_module, "Follows", lambda states, ends: real(states[::-1], ends=ends))


def _every_value_is_another_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Different, "_known", Gathered._known)


def _rows_are_not_listed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Gathered, "_known", lambda _, kept, counts, mine: counts > 1)


@pytest.mark.parametrize(
    "plant",
    [
        _every_value_is_another_one,
        _rows_are_not_listed,
        _later_starts_hold_nothing,
        _paths_are_told_apart_by_state_alone,
        _an_empty_repetition_counts,
        _what_is_preferred_less_goes_on,
    ],
)
def test_a_planted_fault_is_caught(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)

    def is_caught(case: dict[str, Any]) -> bool:
        try:
            _check(case)
        except AssertionError:
            return True
        return False

    if not any(map(is_caught, (OF_TWO_WAYS, OF_EMPTY_TURNS, OF_TWO_VALUES, OF_A_LIST))):
        find(cases(), is_caught, settings=settings(max_examples=2000, deadline=None, phases=[Phase.generate]))
