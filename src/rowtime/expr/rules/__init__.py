"""The rules of monotonicity (semantics 6): one table, gathered from a module per family of functions.

A rule takes a node and a `Parts`, which proves the node's parts. It returns the fact about the node, with the words of
the rule. A node without a rule has no order.
"""

from rowtime.expr.rules import arithmetic, casts, choices, functions, texts, times, windows, zones
from rowtime.expr.rules.table import NAMED, RULES

__all__ = ["NAMED", "RULES", "arithmetic", "casts", "choices", "functions", "texts", "times", "windows", "zones"]
