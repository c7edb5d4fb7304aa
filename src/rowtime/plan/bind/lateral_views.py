"""LATERAL VIEW, UNNEST and LATERAL: a row for each element of a value, with the columns of its own row.

``SELECT a, t FROM s LATERAL VIEW EXPLODE(tags) x AS t`` is ``SELECT a, t FROM (SELECT *, EXPLODE(tags) AS t FROM s) AS
s``, and ``x.t`` is ``t``. OUTER, and LEFT JOIN … ON TRUE, keep rows without an element. Each one can use those before
it.
Elements with several columns (entries of a map, places and elements, the fields of structs) are exploded as structs,
and then taken apart. Without names they have those of Spark, as far as the type of the value is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from rowtime.core.errors import Refused
from rowtime.expr.many_rows import GENERATORS
from rowtime.operators.contract import Column
from rowtime.plan.bind.correlation import placed
from rowtime.plan.bind.struct_fields import fields_in
from rowtime.plan.bind.suggestions import suggestion
from rowtime.sql.dialect import Rowtime
from rowtime.sql.places import refuse_at, unlocated
from rowtime.sql.script import parse_expression

_LATERAL = (exp.Unnest, exp.Lateral)
_VALUE = "given"
_STRUCTS = {
    ("EXPLODE", 2): ("MAP_ENTRIES(given)", ("key", "value")),
    ("POSEXPLODE", 2): ("TRANSFORM(given, (e, i) -> STRUCT(i AS pos, e AS col))", ("pos", "col")),
    ("POSEXPLODE", 3): (
        "TRANSFORM(MAP_ENTRIES(given), (e, i) -> STRUCT(i AS pos, e.key AS key, e.value AS value))",
        ("pos", "key", "value"),
    ),
    ("WITH ORDINALITY", 2): ("TRANSFORM(given, (e, i) -> STRUCT(e AS col, i + 1 AS ord))", ("col", "ord")),
}
"""By function and number of columns: an array of structs with these columns, and their fields."""
_STRUCT = "lateral_{}"
_OF_SPARK = {
    ("EXPLODE", exp.DataType.Type.ARRAY): ("col",),
    ("EXPLODE", exp.DataType.Type.MAP): ("key", "value"),
    ("POSEXPLODE", exp.DataType.Type.ARRAY): ("pos", "col"),
    ("POSEXPLODE", exp.DataType.Type.MAP): ("pos", "key", "value"),
}
"""The names of columns that have none, by the function and the type of the value."""
_NAMED = {"EXPLODE": "tag", "POSEXPLODE": "at, tag", "INLINE": "sku, n", "WITH ORDINALITY": "tag, at"}

OF_JSON = "GET_JSON_OBJECT(js, '$.a') AS a"
"""What to write for JSON_TUPLE."""

ColumnsOf = Callable[[exp.Expr], Sequence[Column]]


@dataclass(frozen=True)
class _Elements:
    """A call that gives a row for each element of a value, and the names of these rows and columns."""

    call: exp.Anonymous
    name: str
    columns: tuple[str, ...]
    fields: tuple[str, ...] = ()
    kinds: tuple[exp.DataType | None, ...] = ()

    def over(self, source: exp.Expr, alias: str, names: Sequence[str]) -> exp.Select:
        """Return the columns ``names`` of a source, together with those of its elements."""
        if not self.fields:
            return _select([exp.Star(), exp.alias_(self.call, self.columns[0], quoted=True)], source)
        taken = {name.lower() for name in names}
        struct = next(name for n in range(len(taken) + 1) if (name := _STRUCT.format(n)) not in taken)
        inner = _select([exp.Star(), exp.alias_(self.call, struct, quoted=True)], source)
        kept: list[exp.Expr] = [exp.column(name, quoted=True) for name in names]
        entries = [
            exp.alias_(exp.column(field, table=struct, quoted=True), name, quoted=True)
            for field, name in zip(self.fields, self.columns, strict=True)
        ]
        return _select([*kept, *entries], _named(inner, alias))


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


def without_laterals(query: exp.Select, text: str, columns_of: ColumnsOf) -> exp.Select:
    """Return the query over sub-queries with generators in their select lists. Raises ``Refused`` (R190).

    ``columns_of`` binds a query and says which columns it has.
    """
    laterals = [*_laterals(query, text)]
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
    rewritten = query.copy()
    for clause in ("laterals", "joins", "from_"):
        rewritten.set(clause, None)
    given = _Columns(source, columns_of)
    elements: list[_Elements] = []
    read = source.copy()
    for node, outer in laterals:
        lateral = _elements(node, text, given.kind_of, outer=outer)
        _unqualify(lateral.call, text, given.inputs - {name.lower()}, elements)
        names = given.names() if lateral.fields else ()
        read = _named(lateral.over(read, name, names), name)
        given.more(lateral)
        elements.append(lateral)
    _list_stars(rewritten, given, elements)
    _unqualify(rewritten, text, given.inputs - {name.lower()}, elements)
    rewritten.set("from_", exp.From(this=read))
    return rewritten


class _Columns:
    """The columns of an input with those of the elements so far, and their types as far as they are declared."""

    def __init__(self, source: exp.Expr, columns_of: ColumnsOf) -> None:
        self._source, self._columns_of = source, columns_of
        self._elements: list[tuple[str, exp.DataType | None]] = []
        self.inputs = {source.alias_or_name.lower()}
        """By these names columns may be asked for."""

    @cached_property
    def own(self) -> Sequence[Column]:
        """Return the columns of the input alone."""
        return self._columns_of(_select([exp.Star()], self._source.copy()))

    def names(self) -> tuple[str, ...]:
        """Return all names."""
        return (*(column.name for column in self.own), *(name for name, _ in self._elements))

    def more(self, elements: _Elements) -> None:
        """Add the columns of elements."""
        self._elements.extend(zip(elements.columns, elements.kinds, strict=True))
        if elements.name and (elements.name,) != tuple(name.lower() for name in elements.columns):
            self.inputs.add(elements.name)

    def kind_of(self, value: exp.Expr) -> exp.DataType | None:
        """Return the type of a column or of a field of a struct, if it is declared."""
        if not isinstance(value, exp.Column | exp.Dot):
            return None
        path = [part.name.lower() for part in value.parts]
        if len(path) > 1 and path[0] in self.inputs:
            path = path[1:]
        kinds = {name.lower(): kind for name, kind in self._elements}
        for column in self.own if path[0] not in kinds else ():
            kinds[column.name.lower()] = exp.DataType.build(column.type, dialect=Rowtime) if column.type else None
        kind = kinds.get(path[0])
        for name in path[1:]:
            kind = next((k for n, k in fields_in(kind) if n.lower() == name), None)
        return kind


def _list_stars(query: exp.Select, given: _Columns, elements: Sequence[_Elements]) -> None:
    """``x.*`` lists the columns of the elements x, and ``s.*`` those of the input s, which are all columns of one."""
    listed = {lateral.name: lateral.columns for lateral in elements if lateral.name in given.inputs}
    entries: list[exp.Expr] = []
    for entry in query.expressions:
        plain = isinstance(entry, exp.Column) and entry.is_star and len(entry.parts) == 2  # noqa: PLR2004 - x and *
        named = entry.table.lower() if plain else ""
        if named not in given.inputs:
            entries.append(entry)
            continue
        names = listed.get(named) or tuple(column.name for column in given.own)
        entries += [placed(exp.column(name, quoted=True), entry) for name in names]
    query.set("expressions", entries)


def _unqualify(node: exp.Expr, text: str, names: set[str], elements: Sequence[_Elements]) -> None:
    """Remove the qualifier from columns of elements: all are columns of one input. Raises ``Refused``."""
    columns_of = {lateral.name: lateral.columns for lateral in elements}
    for column in node.find_all(exp.Column):
        first = next((part for part in ("catalog", "db", "table") if column.args.get(part)), "")
        if not first or (name := column.text(first).lower()) not in names:
            continue
        field = column.parts[1].name
        if not column.is_star and field.lower() not in map(str.lower, columns_of[name]):
            raise refuse_at(
                text, column, "R103", f"there is no column {field} in {name}", suggestion(field, columns_of[name])
            )
        column.set(first, None)


def _laterals(query: exp.Select, text: str) -> Iterator[tuple[exp.Expr, bool]]:
    """Return the values with elements, and whether rows without one are kept."""
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
        yield join.this, bool(join.args.get("side"))
    for lateral in query.args.get("laterals") or []:
        yield lateral, bool(lateral.args.get("outer"))


def _elements(
    node: exp.Expr, text: str, kind_of: Callable[[exp.Expr], exp.DataType | None], *, outer: bool
) -> _Elements:
    call, function = _call(node, text)
    alias = node.args.get("alias") or exp.TableAlias()
    columns = tuple(entry.name for entry in alias.args.get("columns") or ())
    offset = node.args.get("offset")
    if isinstance(offset, exp.Identifier):
        columns = (*columns, offset.name)
    given = call.expressions[0]
    kind = kind_of(given)
    columns = columns or _unnamed(node, function, alias, kind)
    if not columns:
        named = "k, v" if kind is not None and kind.this is exp.DataType.Type.MAP else _NAMED.get(function, "tag")
        hint = f"Name the columns: LATERAL VIEW {call.sql(Rowtime)} x AS {named}, or … AS x({named}) after UNNEST."
        raise _refuse(text, node, "LATERAL VIEW or UNNEST without column names", hint)
    element, flat = _element_of(kind), fields_in(_element_of(kind))
    struct, fields = _STRUCTS.get((function, len(columns)), ("", ()))
    kinds: tuple[exp.DataType | None, ...] = (None,) * len(columns)
    if function == "EXPLODE" and len(columns) == 1:
        kinds = (element,)
    elif function in ("EXPLODE", "INLINE") and len(flat) == len(columns):
        struct, fields, kinds = "", tuple(name for name, _ in flat), tuple(entry for _, entry in flat)
    elif not struct:
        hint = (
            "Take each element as one column, and then its fields: LATERAL VIEW EXPLODE(items) x AS item, and "
            "x.item.sku."
        )
        raise _refuse(text, node, f"{function} with the columns {', '.join(columns)}", hint)
    if struct:
        array = unlocated(parse_expression(struct))
        for column in [entry for entry in array.find_all(exp.Column) if entry.name == _VALUE]:
            column.replace(given.copy())
        given = array
    wanted = "EXPLODE_OUTER" if outer or call.name.upper().endswith("_OUTER") else "EXPLODE"
    generator = exp.Anonymous(this=wanted, expressions=[given.copy()])
    generator.meta.update(call.meta)
    return _Elements(generator, alias.name.lower(), columns, fields, kinds)


def _element_of(kind: exp.DataType | None) -> exp.DataType | None:
    """Return the type of the elements of an array."""
    if kind is None or kind.this is not exp.DataType.Type.ARRAY or not kind.expressions:
        return None
    element: exp.DataType = kind.expressions[0]
    return element


def _unnamed(node: exp.Expr, function: str, alias: exp.TableAlias, kind: exp.DataType | None) -> tuple[str, ...]:
    """Return the names of columns that have no name in the query; none if only Spark knows them."""
    if kind is None:
        return ()
    if isinstance(node, exp.Unnest):  # UNNEST(tags) AS tag: one name for the input and its column
        single = function == "EXPLODE" and alias.name and kind.this is exp.DataType.Type.ARRAY
        return (alias.name,) if single else ()
    if function == "INLINE":
        return tuple(name for name, _ in fields_in(_element_of(kind)))
    return _OF_SPARK.get((function, kind.this), ())


def _call(node: exp.Expr, text: str) -> tuple[exp.Anonymous, str]:
    """Return the function that gives the elements, and its name without OUTER."""
    if isinstance(node, exp.Unnest):
        if len(node.expressions) != 1:
            raise _refuse(text, node, "UNNEST of several values", "Zip them: UNNEST(ARRAYS_ZIP(a, b)) AS u(ab).")
        call = exp.Anonymous(this="EXPLODE", expressions=node.expressions)
        return call, "WITH ORDINALITY" if node.args.get("offset") else "EXPLODE"
    call = node.this
    if isinstance(call, exp.Anonymous) and call.name.upper() in GENERATORS and len(call.expressions) == 1:
        return call, call.name.upper().removesuffix("_OUTER")
    if isinstance(call, exp.Anonymous) and call.name.upper() == "JSON_TUPLE":
        raise _refuse(text, node, "LATERAL JSON_TUPLE", f"Select each value: {OF_JSON}.")
    what = "LATERAL with a query" if isinstance(call, exp.Subquery) else f"LATERAL {call.sql(Rowtime)}"
    raise _refuse(text, node, what, "Call a function that gives rows: LATERAL VIEW EXPLODE(tags) x AS tag.")


def _refuse(text: str, node: exp.Expr, what: str, hint: str) -> Refused:
    return refuse_at(text, node, "R190", f"{what} is not supported", hint)
