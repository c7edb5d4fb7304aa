"""The difference between a checkpoint's plan and another one, in terms of the user's statements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from rowtime.core.secrets import VARIABLE
from rowtime.expr.readable import in_words
from rowtime.operators.contract import Operator
from rowtime.plan.bind.pump_edge import pump_name
from rowtime.plan.program import Program
from rowtime.plan.stored import StoredOperator, StoredPlan
from rowtime.plan.streams_as import pump_of
from rowtime.sql.script import parse_script
from rowtime.sql.statements import CreatePump, CreateStream, CreateTable, CreateView, Query, Statement

_STAND_IN = re.compile(r"v__(\w+?)__v")
_MOST = 300  # characters of a statement


def difference(old: StoredPlan, program: Program, nodes: Sequence[Operator]) -> tuple[str, bool]:
    """Return what differs, and whether something new would need rows of the past.

    ``nodes``: the operators, inputs first, that do not follow from the old plan; empty for any difference.
    """
    before = {name: text for name, text in statements_of(old.sql).items() if name not in old.stopped}
    after = {name: text for name, text in statements_of(program.written).items() if name not in program.stopped}
    for name in _owners(program, nodes or program.operators, after):
        if name in before and name in after and before[name] != after[name]:
            return f"{name} was {_short(before[name])}, is {_short(after[name])}", False
    name = owner_of(nodes[-1].name, after) if nodes else ""
    if nodes and name not in before and nodes[-1].name not in old.operators:
        return f"{name} is new, and its {nodes[-1].kind} would need rows from before the change", True
    added, gone = (sorted(set(a) - set(b)) for a, b in ((after, before), (before, after)))
    if added or gone:
        words = [f"the script {what} {', '.join(names)}" for what, names in (("adds", added), ("lacks", gone)) if names]
        owner = owner_of(nodes[0].name, after) if nodes else "the plan"
        return f"{' and '.join(words)}, and {owner} does not follow from what it was", False
    return _operators(old.operators, {node.name: old.of(node) for node in program.operators}), False


def statements_of(sql: str) -> dict[str, str]:
    """Return the statements that define or run something, by operator name prefix; each text on one line."""
    return {name: " ".join(_STAND_IN.sub(r"${\1}", text).split()) for name, text in _named(parsed(sql))}


def parsed(sql: str) -> Sequence[Statement]:
    """Return the statements of a script; its variables, whose values are unknown, get placeholders."""
    return parse_script(VARIABLE.sub(r"v__\1__v", sql)).statements


def owner_of(operator: str, statements: Mapping[str, str]) -> str:
    """Return the statement to which an operator belongs, by the longest name; else the first part of its own name."""
    parts = operator.split(".")
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((name for name in names if name in statements), parts[0])


def _owners(program: Program, nodes: Sequence[Operator], statements: Mapping[str, str]) -> dict[str, None]:
    """Return the statements to which operators belong, in their order; for a sink also the stream that it writes to."""
    owners: dict[str, None] = {}
    for node in nodes:
        sink = program.sink(node.name)
        target = dict(sink.options).get("stream") if sink else None
        owners |= dict.fromkeys(name for name in (owner_of(node.name, statements), target) if name)
    return owners


def _named(statements: Sequence[Statement]) -> Iterator[tuple[str, str]]:
    queries = [statement for statement in statements if isinstance(statement, Query)]
    for statement in statements:
        if isinstance(statement, CreatePump):
            yield pump_name(statement), statement.text
        elif isinstance(statement, CreateStream) and statement.query is not None:
            yield from ((name, statement.text) for name in (statement.name.text.lower(), pump_name(pump_of(statement))))
        elif isinstance(statement, CreateStream | CreateView | CreateTable):
            yield statement.name.text.lower(), statement.text
        elif isinstance(statement, Query):
            yield "query" if len(queries) == 1 else f"query{queries.index(statement) + 1}", statement.text


def _operators(before: Mapping[str, StoredOperator], after: Mapping[str, StoredOperator]) -> str:
    """Explain a difference when the statements are equal: a variable, say, or a stream of the home directory."""
    for name in [*before, *after]:
        if before.get(name) != after.get(name):
            was, now = (str(plan.get(name, "absent")) for plan in (before, after))
            return in_words(f"{name} was {_short(was)!r}, is {_short(now)!r}")
    return "the statements are not the same"


def _short(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
