"""Scalar functions of a script: SQL functions are replaced by their bodies, Python functions are called by name.

``CREATE FUNCTION f(x INT) RETURNS INT RETURN x + 1`` is inlined at each call before anything is bound. So proofs are
about the body, and the plan has the body. Arguments and results are cast to their types.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from rowtime.core.errors import refuse
from rowtime.plan.bind.suggestions import suggestion
from rowtime.sql.dialect import Rowtime
from rowtime.sql.places import place_of, refuse_at
from rowtime.sql.statements import CreateFunction


class Calls:
    """Replaces calls of a script's functions. ``text``: the script."""

    def __init__(self, text: str, functions: Mapping[str, CreateFunction]) -> None:
        self._text, self._functions = text, functions

    def expand(self, root: exp.Expr, open_: tuple[str, ...] = ()) -> exp.Expr:
        """Return the tree with every call replaced, in place except the root. ``open_``: the enclosing functions.

        Raises ``Refused``: R141 for a wrong number of arguments, R123 for a function that calls itself, R103 for a name
        in a body that is not a parameter.
        """
        calls = [call for call in root.find_all(exp.Anonymous) if call.name.lower() in self._functions]
        for call in reversed(calls):  # a nested call comes after the one around it
            body = self._expanded(call, open_)
            if call is root:
                root = body
            else:
                call.replace(body)
        return root

    def _expanded(self, call: exp.Anonymous, open_: tuple[str, ...]) -> exp.Expr:
        name = call.name.lower()
        function = self._functions[name]
        parameters = function.parameters or ()
        if name in open_:
            raise refuse_at(self._text, call, "R123", f"the function {name} calls itself")
        if len(call.expressions) != len(parameters):
            listed = ", ".join(f"{parameter.name} {parameter.type}" for parameter in parameters)
            what = f"{name} has {len(call.expressions)} arguments here"
            raise refuse_at(self._text, call, "R141", what, f"Write them as they are defined: {name}({listed}).")
        values = [
            _cast(value.copy(), parameter.type) for parameter, value in zip(parameters, call.expressions, strict=True)
        ]
        if function.body is None:
            return exp.Anonymous(this=call.this, expressions=values).update_positions(call)
        arguments = {parameter.name.lower(): value for parameter, value in zip(parameters, values, strict=True)}
        body = self.expand(function.body.copy(), (*open_, name))
        return _cast(self._filled(exp.paren(body, copy=False), function, arguments).this, function.returns)

    def _filled(self, body: exp.Expr, function: CreateFunction, arguments: Mapping[str, exp.Expr]) -> exp.Expr:
        for column in list(body.find_all(exp.Column)):
            ours = column.text("table").lower() in ("", function.name.text.lower())
            value = arguments.get(column.name.lower()) if ours else None
            if value is None:
                what = f"the function {function.name.text} has no parameter {column.name}"
                hint = suggestion(column.name, [parameter.name for parameter in function.parameters or ()])
                raise refuse("R103", what, hint, place_of(self._text, column))
            column.replace(value.copy())
        return body


def check(function: CreateFunction) -> None:
    """Refuse (R141) invalid parameters of a function."""
    names = [parameter.name.lower() for parameter in function.parameters or ()]
    for parameter in function.parameters or ():
        if parameter.order or parameter.checks or not parameter.nullable or names.count(parameter.name.lower()) > 1:
            what = f"a parameter of a function needs a unique name and a type: {parameter.name} {parameter.type}"
            raise refuse(
                "R141", what, "For example CREATE FUNCTION f(x INT, y INT) RETURNS INT RETURN x + y.", parameter.place
            )


def _cast(value: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=value, to=exp.DataType.build(kind, dialect=Rowtime))
