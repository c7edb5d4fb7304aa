"""Faults in the driver's computation with DuckDB; in `test_planted_faults` the comparisons with Spark catch each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from rowtime.frames import (
    aggregates,
    arrays,
    frame,
    json_texts,
    queries,
    regular_expressions,
    scalars,
    text_casts,
    translated,
)
from rowtime.frames.times import UNITS
from rowtime.frames.values import Rule, Scope, Value, cast

if TYPE_CHECKING:
    import pytest

Plant = Callable[["pytest.MonkeyPatch"], None]


def _rule(patch: pytest.MonkeyPatch, node: type | str, change: Callable[[str], str]) -> None:
    """Change the translation of one kind of expression."""
    real: Rule = translated._RULES[node]

    def rule(tree: exp.Expr, scope: Scope) -> Value:
        found = real(tree, scope)
        return Value(change(found.sql), found.type)

    patch.setitem(translated._RULES, node, rule)  # type: ignore[arg-type]


def _pair(patch: pytest.MonkeyPatch, node: type, form: str) -> None:
    """Write an expression over two values in another way."""

    def rule(tree: exp.Expr, scope: Scope) -> Value:
        real = scalars.SCALARS[node](tree, scope)
        left, right = (scope.value(part) for part in (tree.this, tree.expression))
        if real.type == "boolean" or not all(part.whole or part.type == "double" for part in (left, right)):
            return Value(form.format(left.sql, right.sql), real.type)
        return cast(Value(form.format(left.sql, right.sql), real.type), real.type)

    patch.setitem(translated._RULES, node, rule)  # type: ignore[arg-type]


def _query(patch: pytest.MonkeyPatch, old: str, new: str) -> None:
    """Change the words in every query over rows."""
    real = queries.Query.over
    patch.setattr(queries.Query, "over", lambda self, sql, *others: real(self, sql.replace(old, new), *others))


def nulls_are_sorted_last(patch: pytest.MonkeyPatch) -> None:
    real = aggregates.sort_key
    patch.setattr(translated, "sort_key", lambda *given: real(*given).replace("NULLS FIRST", "NULLS LAST"))


def nulls_are_last_in_windows(patch: pytest.MonkeyPatch) -> None:
    real = aggregates.sort_key
    patch.setattr(aggregates, "sort_key", lambda *given: real(*given).replace("NULLS FIRST", "NULLS LAST"))


def a_division_rounds_down(patch: pytest.MonkeyPatch) -> None:
    _pair(patch, exp.IntDiv, "CAST(floor(CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE)) AS BIGINT)")


def a_division_by_zero_is_infinite(patch: pytest.MonkeyPatch) -> None:
    _pair(patch, exp.Div, "(CAST({0} AS DOUBLE) / CAST({1} AS DOUBLE))")


def hours_before_1970_are_rounded_up(patch: pytest.MonkeyPatch) -> None:
    def rule(tree: exp.Expr, scope: Scope) -> Value:
        of, unit = scope.value(tree.this), tree.args["unit"].name.upper()
        us, size = f"epoch_us({of.sql})", UNITS.get(unit, 1)
        return Value(f"make_timestamp({us} - {us} % {size})", of.type)

    patch.setitem(translated._RULES, exp.TimestampTrunc, rule)  # type: ignore[arg-type]


def remainders_are_negative(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, "pmod", lambda sql: sql.partition(" + ")[0].removeprefix("((") + "")


def an_upper_end_belongs_to_a_window(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.LT, lambda sql: sql.replace(" < ", " <= "))


def a_lower_end_does_not_belong_to_a_window(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.GTE, lambda sql: sql.replace(" >= ", " > "))


def a_frame_has_a_row_more(patch: pytest.MonkeyPatch) -> None:
    real = aggregates._frame
    patch.setattr(aggregates, "_frame", lambda spec: real(spec).replace("1 PRECEDING", "CURRENT ROW"))


def not_a_number_equals_nothing(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.EQ, lambda sql: f"({sql} AND CAST({sql[1:].partition(' = ')[0]} AS VARCHAR) <> 'nan')")


def null_keys_meet_nothing(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.NullSafeEQ, lambda sql: sql.replace("IS NOT DISTINCT FROM", "="))


def a_text_beside_null_is_the_text(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.Concat, lambda sql: f"concat({sql[1:-1].replace(' || ', ', ')})")


def decimals_lose_a_digit(patch: pytest.MonkeyPatch) -> None:
    real = scalars.of_decimals

    def rule(*given: Any) -> Value:
        found = real(*given)
        scale = int(found.type.rpartition(",")[2].rstrip(")"))
        return Value(f"CAST(trunc({found.sql}, {max(scale - 1, 0)}) AS {found.type})", found.type)

    patch.setattr(scalars, "of_decimals", rule)


def times_are_milliseconds(patch: pytest.MonkeyPatch) -> None:
    real = queries._plain

    def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
        found = real(column)
        if not pa.types.is_timestamp(found.type):
            return found
        return pc.cast(pc.cast(found, pa.timestamp("ms"), safe=False), pa.timestamp("us"))

    patch.setattr(queries, "_plain", plain)


def a_union_drops_equal_rows(patch: pytest.MonkeyPatch) -> None:
    _query(patch, "UNION ALL", "UNION")


def rows_without_a_key_are_no_rows_without_a_match(patch: pytest.MonkeyPatch) -> None:
    real = frame.Frame.joined

    def joined(self: frame.Frame, other: frame.Frame, test: str, how: str) -> Any:
        found = real(self, other, test, how)
        return found.where("k IS NOT NULL") if found is not None and how == "left_anti" else found

    patch.setattr(frame.Frame, "joined", joined)


def rows_without_a_match_are_dropped(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(frame._JOINS, "left", "INNER")


def a_row_comes_once_a_match(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(frame._JOINS, "left_semi", "INNER")


def both_zeros_are_groups(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(frame, "group_key", lambda key: key)


def nulls_are_counted(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.Count, lambda sql: sql if "DISTINCT" in sql else "count(*)")


def the_last_value_that_is_not_null(patch: pytest.MonkeyPatch) -> None:
    def changed(sql: str) -> str:
        return sql.replace("struct_extract(", "", 1).replace("struct_pack(v := ", "(", 1).replace(", 'v')", "", 1)

    _rule(patch, exp.ArgMax, changed)


def nulls_in_structs_are_the_greatest(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(arrays, "_by_keys", lambda of, way: Value(way(of.sql), of.type))


def values_are_collected_backwards(patch: pytest.MonkeyPatch) -> None:
    real = arrays.sort_key
    patch.setattr(arrays, "sort_key", lambda *given: real(*given).replace("ASC", "DESC"))


def an_array_of_none_is_null(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.Transform, lambda sql: sql.removeprefix("coalesce(").removesuffix(", [])"))


def sums_wrap_around(patch: pytest.MonkeyPatch) -> None:
    def changed(sql: str) -> str:
        inner = sql.removeprefix("CAST(").removesuffix(" AS BIGINT)")
        return f"CAST((({inner} + (1::HUGEINT << 63)) % (1::HUGEINT << 64)) - (1::HUGEINT << 63) AS BIGINT)"

    _rule(patch, exp.Sum, changed)


def what_cannot_be_computed_is_no_rows(patch: pytest.MonkeyPatch) -> None:
    real = queries.Query.rows

    def rows(self: queries.Query) -> pa.Table:
        try:
            return real(self)
        except queries.Uncomputed:
            return real(queries.Query(self.sql, {name: table.slice(0, 0) for name, table in self.tables.items()}))

    patch.setattr(queries.Query, "rows", rows)


def rows_keep_the_order_in_which_they_came(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(frame.Frame, "in_order", lambda self, _terms: self)


def the_last_row_is_lost(patch: pytest.MonkeyPatch) -> None:
    real = queries.Query.rows
    # A count of rows has one row.
    patch.setattr(queries.Query, "rows", lambda self: (rows := real(self)).slice(0, max(rows.num_rows - 1, 1)))


def letters_have_simple_cases(patch: pytest.MonkeyPatch) -> None:
    for node in (exp.Upper, exp.Lower):
        _rule(patch, node, lambda sql: sql.replace("CAST(CASE ", "CAST(CASE TRUE OR "))


def a_dot_is_any_sign_but_a_line_feed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(regular_expressions, "_LINE_ENDS", r"\n")


def halves_are_rounded_down(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.Round, lambda sql: sql.replace(" >= (", " > ("))


def numbers_are_rounded_by_their_bits(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.Round, lambda sql: f"round({sql.split('isfinite(')[1].split(')')[0]}, 2)")


def texts_have_blanks_of_all_kinds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(text_casts, "_WHOLE_NUMBER", text_casts._WHOLE_NUMBER.replace(r"\x7F", r"\x{A0}"))


def times_may_have_a_zone_without_seconds(patch: pytest.MonkeyPatch) -> None:
    form = text_casts._TIME_IN_UTC.replace("Z)", f"Z|{text_casts._DATE}[ T].*Z)")
    patch.setitem(text_casts._FORMS, "timestamp", form)


def seconds_are_rounded_down(patch: pytest.MonkeyPatch) -> None:
    real = translated._RULES[exp.UnixSeconds]
    patch.setitem(translated._RULES, "unix_timestamp", real)  # type: ignore[arg-type]


def equal_names_are_one(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(json_texts, "_once_in", lambda _text, _names: "TRUE")


def lax_json_is_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(json_texts, "_LAX", "no such text")


def nulls_in_arrays_are_nothing(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.ArrayContains, lambda sql: sql.replace(" > list_count(", " < list_count("))


def equal_elements_keep_no_order(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.ArrayDistinct, lambda sql: sql.replace("struct_pack(n := x.n, v", "struct_pack(n := -x.n, v"))


def quotients_are_cut(patch: pytest.MonkeyPatch) -> None:
    _rule(patch, exp.Div, lambda sql: sql.replace("2 * abs(", "0 + 2 * abs(").replace(" + abs(", " + 0 * abs("))


def what_was_refused_stays_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(frame._JOINS, "left_anti", "SEMI")


ROWS: Sequence[tuple[str, Plant]] = (
    ("windows", nulls_are_last_in_windows),
    ("windows", a_frame_has_a_row_more),
    ("a left join", null_keys_meet_nothing),
    ("a left join of few", rows_without_a_match_are_dropped),
    ("rows with a match", a_row_comes_once_a_match),
    ("rows without", rows_without_a_key_are_no_rows_without_a_match),
    ("a union by names", a_union_drops_equal_rows),
    ("groups", nulls_are_counted),
    ("one group", the_last_value_that_is_not_null),
)
"""Each fault with the rows of `test_frame` that show it."""
VALUES: Sequence[tuple[tuple[str, str], Plant]] = (
    (("int", "int"), a_division_rounds_down),
    (("int", "int"), an_upper_end_belongs_to_a_window),
    (("int", "int"), a_lower_end_does_not_belong_to_a_window),
    (("int", "int"), remainders_are_negative),
    (("double", "double"), not_a_number_equals_nothing),
    (("double", "double"), a_division_by_zero_is_infinite),
    (("decimal(10,2)", "decimal(5,4)"), decimals_lose_a_digit),
    (("decimal(10,2)", "int"), quotients_are_cut),
    (("timestamp", "timestamp"), seconds_are_rounded_down),
    (("timestamp", "timestamp"), times_are_milliseconds),
    (("timestamp", "timestamp"), hours_before_1970_are_rounded_up),
    (("string", "string"), a_text_beside_null_is_the_text),
)
"""Each fault with the types of `test_same_as_spark` whose values show it."""
ODD_TEXTS: Sequence[tuple[str, Plant]] = (
    ("CASED", letters_have_simple_cases),
    ("MATCHED", a_dot_is_any_sign_but_a_line_feed),
    ("READ", texts_have_blanks_of_all_kinds),
    ("READ", times_may_have_a_zone_without_seconds),
    ("JSON", equal_names_are_one),
    ("JSON", lax_json_is_read),
)
"""Each fault with the list of expressions of `test_same_as_spark` whose values over odd texts show it."""
HALVES: Sequence[Plant] = (halves_are_rounded_down, numbers_are_rounded_by_their_bits)
ELEMENTS: Sequence[Plant] = (nulls_in_arrays_are_nothing, equal_elements_keep_no_order)
ARRAYS: Sequence[Plant] = (
    nulls_in_structs_are_the_greatest, values_are_collected_backwards, an_array_of_none_is_null,
)  # fmt: skip
LAWS: Sequence[tuple[str, Plant]] = (
    ("t-sort", the_last_row_is_lost),
    ("t-sort", what_was_refused_stays_alone),
    ("group by with partial results", rows_keep_the_order_in_which_they_came),
    ("rejected rows", the_last_row_is_lost),
)
"""Each fault with a law of `tests/laws` whose ticks the driver computes."""
