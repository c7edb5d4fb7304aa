"""Row patterns of the oracle as text, and random ones."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.oracle.match_recognize import Pattern

NAMES = ("A", "B", "C")
_LIMITS = [(0, None), (1, None), (0, 1), (2, 2), (1, 2), (0, 2), (2, None)]


def text(part: Pattern) -> str:
    """The pattern in SQL."""
    kind, *more = part
    if kind == "rep":
        body, least, most, greedy = more
        return f"({text(body)}){_quantifier(least, most)}{'' if greedy else '?'}"
    if kind in ("var", "^", "$"):
        return str(more[0]) if more else str(kind)
    inner = [more[0]] if kind == "out" else more[0]
    written = [_grouped(one) if kind == "seq" else text(one) for one in inner]
    forms = {"seq": (" ", "{}"), "alt": (" | ", "({})"), "perm": (", ", "PERMUTE({})"), "out": ("", "{{- {} -}}")}
    between, form = forms[str(kind)]
    return form.format(between.join(written))


def _grouped(part: Pattern) -> str:
    return f"({text(part)})" if part[0] == "seq" else text(part)


def _quantifier(least: int, most: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if short is not None:
        return short
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


def patterns(*, anchors: bool = True, out: bool = True) -> st.SearchStrategy[Pattern]:
    """Random patterns of a few parts."""
    leaf: Any = st.sampled_from([("var", name) for name in NAMES])
    if anchors:
        leaf = st.one_of(leaf, leaf, leaf, st.sampled_from([("^",), ("$",)]))

    def above(below: Any) -> Any:
        some = st.lists(below, min_size=1, max_size=3)
        repeated = st.builds(
            lambda body, limits, greedy: ("rep", body, *limits, greedy), below, st.sampled_from(_LIMITS), st.booleans()
        )
        made = [st.builds(lambda p: ("seq", p), some), st.builds(lambda p: ("alt", p), some), repeated, repeated,
                st.builds(lambda p: ("perm", p), st.lists(below, min_size=2, max_size=3))]  # fmt: skip
        if out:
            made.append(st.builds(lambda body: ("out", body), below))
        return st.one_of(*made)

    found: Any = st.recursive(leaf, above, max_leaves=5)
    return found.filter(lambda part: any(name in text(part) for name in NAMES))
