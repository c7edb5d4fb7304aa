"""Chains of AND and of OR, whose parse trees are as deep as the chains are long."""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

_CHAINED = 32  # terms that stay a chain


def balanced(node: exp.Expr | None) -> exp.Expr | None:
    """Turn a long chain of AND or OR into a shallow tree, so that a thousand conditions are not a thousand levels."""
    if not isinstance(node, (exp.And, exp.Or)):
        return node
    kind, terms, left = type(node), [], node
    while type(left) is kind:
        terms.append(left.expression)
        left = left.this
    terms = [left, *reversed(terms)]
    while len(terms) > _CHAINED:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [*(kind(this=one, expression=other) for one, other in pairs), *terms[len(terms) // 2 * 2 :]]
    return node if left is terms[0] else reduce(lambda one, other: kind(this=one, expression=other), terms)
