"""EXPLAIN: what each operator needs, keeps, emits and promises, as text and as plain values.

It shows the answers of the operators themselves, which the planner and the running tick also use; nothing is defined
twice. It needs neither Spark nor Java.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from datetime import timedelta
from typing import Any

from sqlglot import exp

from rowtime.core.columns import ROWTIME
from rowtime.core.fields import typed
from rowtime.core.secrets import shown
from rowtime.expr.facts import ROWTIME_FACT
from rowtime.expr.monotonicity import prove
from rowtime.expr.order import Order
from rowtime.expr.proof import Proof, lines_of
from rowtime.expr.readable import in_words, readable
from rowtime.operators.contract import Column, Operator, Shape, walk
from rowtime.operators.contract.requirement import UNORDERED
from rowtime.operators.over.value_clocks import Closer
from rowtime.operators.rows.select import Item
from rowtime.plan.formats import is_known
from rowtime.plan.levels import Levels
from rowtime.plan.program import Program

Entry = Mapping[str, Any]

# Fields that other lines of an entry show, or that only the running tick or an upgrade uses.
_SHOWN_ELSEWHERE = frozenset({
    "name", "input", "inputs", "gate", "gates", "columns", "items", "hidden", "timed", "closers", "declares", "made",
    "passed", "event", "sides", "passes", "more", "origins", "column_bounds", "over", "anew", "refuses_pairs",
})  # fmt: skip


def explain(program: Program) -> list[dict[str, Any]]:
    """Return an entry for every operator that the program runs, inputs first, each once."""
    return _entries(program.operators)


def explain_query(root: Operator) -> list[dict[str, Any]]:
    """Return an entry for every operator below and including one, inputs first: EXPLAIN of a query."""
    return _entries([*walk(root)])


def as_text(entries: Sequence[Entry]) -> str:
    """Return the entries as a tree: a reader above its input, a shared operator once."""
    by_name = {entry["name"]: entry for entry in entries}
    read = {name for entry in entries for name in entry["inputs"]}
    printed: set[str] = set()
    trees = ("\n".join(_tree(by_name, entry["name"], printed)) for entry in entries if entry["name"] not in read)
    return "\n\n".join(trees)


def orders_as_text(entries: Sequence[Entry]) -> str:
    """Return the order of each column of each operator, and of the keys that close groups."""
    return "\n\n".join("\n".join(_order_lines(entry)) for entry in entries)


def explained(kind: str, root: Operator) -> str:
    """Return the answer to an EXPLAIN statement of this kind; WAITING needs a checkpoint, see `waiting`."""
    entries = explain_query(root)
    return orders_as_text(entries) if kind == "MONOTONICITY" else as_text(entries)


# -- one operator as plain values -------------------------------------------------------


def _entries(operators: Sequence[Operator]) -> list[dict[str, Any]]:
    levels = Levels.of(operators)
    return [_entry(node, levels.runs(node.name)) for node in operators]


def _entry(node: Operator, runs: str) -> dict[str, Any]:
    shape = node.emits()
    columns = [column for column in shape.columns if not column.name.startswith("__")]
    return {
        "name": node.name,
        "kind": node.kind,
        "with": dict(_settings(node)),
        "inputs": [child.name for child in node.inputs],
        "requires": _needed(node),
        "runs": runs,
        "keeps": [{"what": kept.what, "until": kept.until, "bounded_by": kept.by} for kept in node.keeps()],
        "emits": {
            "columns": [{"name": c.name, "type": c.type or None, "order": c.order.value} for c in columns],
            "single": shape.single,
            "placed": shape.placed,
            "released": shape.released,
            "in_words": _in_words(shape),
        },
        "groups": [_group(node, number, key) for number, key in enumerate(_keys(node))],
        "proofs": [proof.as_json() for proof in _proofs(node)],
        "promises": {"bound": _bound(node), "reason": node.reason},
    }


def _needed(node: Operator) -> str:
    """Return the operator's requirement in words; if inputs differ, those for which there is one."""
    words = {need.words for need in node.requires()}
    return "; ".join(sorted(words - {UNORDERED.words})) or UNORDERED.words


def _proofs(node: Operator) -> Iterator[Proof]:
    """Yield the proofs of the order of an operator's expressions, from the facts about its input."""
    if len(node.inputs) != 1:
        return
    facts = {ROWTIME: ROWTIME_FACT, **{column.name: column.known for column in node.inputs[0].emits().columns}}
    listed = _keys(node) or node.listed()
    value = getattr(node, "key", None)
    for item in (*listed, *([value] if isinstance(value, Item) else [])):
        if not isinstance(item.expression.unnest(), exp.Column):
            yield prove(item.expression, facts)


def _in_words(shape: Shape) -> list[str]:
    sorted_by = ", ".join(in_words(term) for term in shape.order)
    return [
        "as one writer" if shape.single else "a clock for each writer",
        "each row has a place in its writer" if shape.placed else "rows have no place of their own",
        f"released: no row runs ahead of the bound, order {sorted_by}"
        if shape.released
        else "rows may run ahead of the bound",
    ]


def _keys(node: Operator) -> tuple[Item, ...]:
    keys = getattr(node, "keys", ())
    return tuple(key for key in keys if isinstance(key, Item))


def _group(node: Operator, number: int, key: Item) -> dict[str, Any]:
    closes = any(_is(closer, key, number) for closer in getattr(node, "closers", ()))
    return {"key": readable(key.expression), "order": key.column.order.value, "closes": closes}


def _is(closer: Item | Closer | int, key: Item, number: int) -> bool:
    """Return True if what closes groups, by name or by number, is that key."""
    if isinstance(closer, Item):
        return closer.column.name == key.column.name
    return number == (closer if isinstance(closer, int) else closer.key)


def _bound(node: Operator) -> str:
    """Return the operator's bound in words; one without a reason passes bounds on (see `Operator.reason`)."""
    if node.reason:
        return node.promise
    if len(node.inputs) == 1:
        return f"the bound of {node.inputs[0].name}"
    return f"the least bound of {', '.join(child.name for child in node.inputs)}"


def _settings(node: Operator) -> Iterator[tuple[str, str]]:
    """Yield the settings of an operator, beyond its name, inputs and columns."""
    for field in fields(node):  # type: ignore[arg-type]  # every operator is one
        value = getattr(node, field.name)
        if field.name in _SHOWN_ELSEWHERE or any(value is child for child in node.inputs):
            continue
        if not _says(value) or value == 0:
            continue
        if field.name == "keys" and _keys(node):
            continue  # shown separately, with their orders
        yield field.name, _setting(field, value)


def _setting(field: Field[Any], value: Any) -> str:
    if typed(field, "Micros"):
        return f"{'-' if value < 0 else ''}{timedelta(microseconds=abs(value))}"
    if "options" in field.metadata:
        return _options(value) if field.name == "options" else f"{value[0]} {_options(value[1])}".strip()
    return _value(value)


def _options(pairs: Sequence[tuple[str, str]]) -> str:
    """Return options as they were written, without secrets."""
    texts = (f"{name} '{shown(name, value, is_known)}'" for name, value in pairs)
    return f"({', '.join(texts)})" if pairs else ""


def _value(value: object) -> str:
    if isinstance(value, exp.Expr):
        return readable(value)
    if isinstance(value, Item):
        return readable(value.expression)
    if isinstance(value, Column):
        return in_words(value.name)
    if isinstance(value, tuple):
        return ", ".join(map(_value, value))
    if is_dataclass(value) and type(value).__str__ is object.__str__:
        parts = [(field, getattr(value, field.name)) for field in fields(value)]
        return f"({', '.join(f'{field.name} {_setting(field, part)}' for field, part in parts if _says(part))})"
    return "yes" if value is True else in_words(str(value))


def _says(value: object) -> bool:
    return value is not None and value is not False and value not in ((), "")


# -- as text ----------------------------------------------------------------------------


def _tree(entries: Mapping[str, Entry], name: str, printed: set[str]) -> list[str]:
    entry = entries[name]
    if name in printed:
        return [f"{name}: {entry['kind']}, as above"]
    printed.add(name)
    lines = [f"{name}: {entry['kind']}", *(f"    {line}" for line in _lines(entry))]
    for child in entry["inputs"]:
        lines.extend(f"  {line}" for line in _tree(entries, child, printed))
    return lines


def _lines(entry: Entry) -> Iterator[str]:
    settings = "; ".join(f"{name} {value}" for name, value in entry["with"].items())
    kept = "; ".join(
        f"{state['what']}, until {state['until']} (bounded by {state['bounded_by']})" for state in entry["keeps"]
    )
    promise = entry["promises"]
    if settings:
        yield f"with      {settings}"
    for group in entry["groups"]:
        yield f"group     {group['key']}: {_order_of(group['order'])}{', closes groups' if group['closes'] else ''}"
    if entry["inputs"]:
        yield f"reads     {', '.join(entry['inputs'])}"
    yield f"requires  {entry['requires']}"
    if entry["runs"]:
        yield f"runs in   {entry['runs']}"
    yield f"keeps     {kept or 'nothing'}"
    yield f"emits     {', '.join(map(_column_text, entry['emits']['columns'])) or 'no columns'}"
    yield f"          {'; '.join(entry['emits']['in_words'])}"
    yield f"promises  {promise['bound']}{': ' + promise['reason'] if promise['reason'] else ''}"


def _column_text(column: Mapping[str, Any]) -> str:
    order = column["order"]
    return " ".join([column["name"], *filter(None, [column["type"]]), *([order] if order != Order.NONE.value else [])])


def _order_of(order: str) -> str:
    return "no order is known" if order == Order.NONE.value else order


def _order_lines(entry: Entry) -> Iterator[str]:
    yield f"{entry['name']}: {entry['kind']}"
    rows = [("ROWTIME", Order.ASCENDING.value), *((c["name"], c["order"]) for c in entry["emits"]["columns"])]
    width = max(len(name) for name, _ in rows)
    for name, order in rows:
        yield f"    {name:<{width}}  {_order_of(order)}"
    for group in entry["groups"]:
        yield f"    GROUP BY {group['key']}: {_order_of(group['order'])}{', closes groups' if group['closes'] else ''}"
    for proof in entry["proofs"]:
        yield from (f"    {line}" for line in lines_of(proof))
