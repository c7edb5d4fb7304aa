"""LATERAL VIEW, UNNEST and LATERAL: a row for each element of a value, with the columns of its own row.

``SELECT a, t FROM s LATERAL VIEW EXPLODE(tags) x AS t`` is ``SELECT a, t FROM (SELECT *, EXPLODE(tags) AS t FROM s) AS
s``, and ``x.t`` is ``t``. OUTER, and LEFT JOIN … ON TRUE, keep rows without an element. Each one can use those before
it. Elements with several columns (entries of a map, or positions and elements) are exploded as structs, and then
unpacked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from rowtime.core.errors import Refused
from rowtime.expr.many_rows import GENERATORS
from rowtime.sql.dialect import Rowtime
from rowtime.sql.places import refuse_at, unlocated
from rowtime.sql.script import parse_expression

_LATERAL = (exp.Unnest, exp.Lateral)
_ORDINALITY = "Write LATERAL VIEW POSEXPLODE(tags) x AS at, tag; it counts from 0."


_VALUE = "given"
_STRUCTS = {
    ("EXPLODE", 2): ("MAP_ENTRIES(given)", ("key", "value")),
    ("POSEXPLODE", 2): ("TRANSFORM(given, (e, i) -> STRUCT(i AS pos, e AS col))", ("pos", "col")),
    ("POSEXPLODE", 3): (
        "TRANSFORM(MAP_ENTRIES(given), (e, i) -> STRUCT(i AS pos, e.key AS key, e.value AS value))",
        ("pos", "key", "value"),
    ),
}
"""By function and number of columns: an array of structs with these columns, and their fields."""
_STRUCT = "lateral_{}"

NamesOf = Callable[[exp.Expr], Sequence[str]]


@dataclass(frozen=True)
class _Elements:
    """A call that gives a row for each element of a value, and the names of these rows and columns."""

    call: exp.Anonymous
    name: str
    columns: tuple[str, ...]
    fields: tuple[str, ...] = ()

    def over(self, source: exp.Expr, alias: str, names_of: NamesOf) -> exp.Select:
        """Return the columns of a source, together with those of its elements."""
        if not self.fields:
            return _select([exp.Star(), exp.alias_(self.call, self.columns[0], quoted=True)], source)
        known = names_of(_select([exp.Star()], source.copy()))
        taken = {name.lower() for name in known}
        struct = next(name for n in range(len(taken) + 1) if (name := _STRUCT.format(n)) not in taken)
        inner = _select([exp.Star(), exp.alias_(self.call, struct, quoted=True)], source)
        kept: list[exp.Expr] = [exp.column(name, quoted=True) for name in known]
        made = [
            exp.alias_(exp.column(field, table=struct, quoted=True), name, quoted=True)
            for field, name in zip(self.fields, self.columns, strict=True)
        ]
        return _select([*kept, *made], _named(inner, alias))


def _select(entries: list[exp.Expr], source: exp.Expr) -> exp.Select:
    return exp.Select(expressions=entries, from_=exp.From(this=source), stream=True)


def _named(query: exp.Select, name: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))


def has_laterals(query: exp.Select) -> bool:
    """Return True if a query reads the elements of a value."""
    joins = query.args.get("joins") or []
    if not query.args.get("from_"):
        return False  # the binder refuses the query
    return bool(query.args.get("laterals")) or any(isinstance(join.this, _LATERAL) for join in joins)


def without_laterals(query: exp.Select, text: str, names_of: NamesOf) -> exp.Select:
    """Return the query over sub-queries with generators in their select lists. Raises ``Refused`` (R190).

    ``names_of`` binds a query and names its columns.
    """
    found = [*_found(query, text)]
    source = query.args["from_"].this
    name = source.alias_or_name
    if source.args.get("over") is not None:
        raise _refuse(
            text,
            source,
            "a join window together with LATERAL VIEW or UNNEST",
            "OVER after an input is for joins; leave it out.",
        )
    if not name:
        raise _refuse(
            text, source, "LATERAL VIEW of an input without a name", "Give it one: FROM (SELECT …) AS s LATERAL VIEW …"
        )
    names = {one.name for one in found if one.name != name.lower()}
    made = query.copy()
    for clause in ("laterals", "joins", "from_"):
        made.set(clause, None)
    _unqualify(made, names)
    read = source.copy()
    for one in found:
        _unqualify(one.call, names)
        read = _named(one.over(read, name, names_of), name)
    made.set("from_", exp.From(this=read))
    return made


def _unqualify(node: exp.Expr, names: set[str]) -> None:
    """Remove the qualifier from columns of elements: all are columns of one input."""
    for column in node.find_all(exp.Column):
        first = next((part for part in ("catalog", "db", "table") if column.args.get(part)), "")
        if first and column.text(first).lower() in names:
            column.set(first, None)


def _found(query: exp.Select, text: str) -> Iterator[_Elements]:
    joins = query.args.get("joins") or []
    for join in joins:
        if not isinstance(join.this, _LATERAL):
            where = next((part for part in (*joins, *(query.args.get("laterals") or [])) if part is not join), join)
            hint = (
                "Join in a sub-query with a name, and take the elements from that: FROM (SELECT …) AS j LATERAL VIEW …"
            )
            raise _refuse(text, where, "LATERAL VIEW or UNNEST together with a join", hint)
        on = join.args.get("on")
        if join.args.get("using") or (on is not None and on != exp.true()):
            hint = "Write the condition in WHERE, or ON TRUE."
            raise _refuse(text, join, "a join condition between a row and its elements", hint)
        if (join.args.get("side") or "") not in ("", "LEFT"):
            raise _refuse(
                text, join, f"{join.args['side']} JOIN of a row with its elements", "Write CROSS or LEFT JOIN."
            )
        yield _elements(join.this, text, outer=bool(join.args.get("side")))
    for lateral in query.args.get("laterals") or []:
        yield _elements(lateral, text, outer=bool(lateral.args.get("outer")))


def _elements(node: exp.Expr, text: str, *, outer: bool) -> _Elements:
    call = _call(node, text)
    function = call.name.upper().removesuffix("_OUTER")
    alias = node.args.get("alias") or exp.TableAlias()
    columns = tuple(one.name for one in alias.args.get("columns") or ())
    if not columns:
        hint = f"Name the columns: LATERAL VIEW {call.sql(Rowtime)} x AS tag, or … AS x(tag) after UNNEST."
        raise _refuse(text, node, "LATERAL VIEW or UNNEST without column names", hint)
    struct, fields = _STRUCTS.get((function, len(columns)), ("", ()))
    if not struct and (function, len(columns)) != ("EXPLODE", 1):
        hint = (
            "Take each element as one column, and then its fields: LATERAL VIEW EXPLODE(items) x AS item, and "
            "x.item.sku."
        )
        raise _refuse(text, node, f"{function} with the columns {', '.join(columns)}", hint)
    given = call.expressions[0]
    if struct:
        array = unlocated(parse_expression(struct))
        for column in [one for one in array.find_all(exp.Column) if one.name == _VALUE]:
            column.replace(given.copy())
        given = array
    wanted = "EXPLODE_OUTER" if outer or call.name.upper().endswith("_OUTER") else "EXPLODE"
    made = exp.Anonymous(this=wanted, expressions=[given.copy()])
    made.meta.update(call.meta)
    return _Elements(made, alias.name.lower(), columns, fields)


def _call(node: exp.Expr, text: str) -> exp.Anonymous:
    """Return the function that gives the elements."""
    if isinstance(node, exp.Unnest):
        if node.args.get("offset"):
            raise _refuse(text, node, "WITH ORDINALITY", _ORDINALITY)
        if len(node.expressions) != 1:
            raise _refuse(text, node, "UNNEST of several values", "Zip them: UNNEST(ARRAYS_ZIP(a, b)) AS u(ab).")
        return exp.Anonymous(this="EXPLODE", expressions=node.expressions)
    call = node.this
    if isinstance(call, exp.Anonymous) and call.name.upper() in GENERATORS and len(call.expressions) == 1:
        return call
    what = "LATERAL with a query" if isinstance(call, exp.Subquery) else f"LATERAL {call.sql(Rowtime)}"
    raise _refuse(text, node, what, "Call a function that gives rows: LATERAL VIEW EXPLODE(tags) x AS tag.")


def _refuse(text: str, node: exp.Expr, what: str, hint: str) -> Refused:
    return refuse_at(text, node, "R190", f"{what} is not supported", hint)
