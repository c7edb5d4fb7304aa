"""Lineage over a plan: the link of an operator (`Operator.link`), and how far back the changes of events go."""

from __future__ import annotations

from dataclasses import replace

from rowtime.core.columns import ASKED_VERSION, CHANGED_BY
from rowtime.operators.contract import Link, Operator, walk
from rowtime.operators.rows.lifetimes import is_lifetimes


def link_of(node: Operator, n: int) -> Link:
    """The rule of an operator for its n-th input; of events whose changes are numbered, up to the one in question."""
    found = node.link(n)
    if is_lifetimes(node) and any(below.numbers_changes for below in walk(node.inputs[n])):
        return replace(found, version=CHANGED_BY, meets=f"({found.meets}) AND {CHANGED_BY} <= {ASKED_VERSION}")
    return found
