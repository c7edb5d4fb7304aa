"""Functions that change the number of rows: aggregates (many to one), and generators such as EXPLODE (one to many)."""

from __future__ import annotations

from sqlglot import exp

AGGREGATES: frozenset[str] = frozenset({
    "ANY", "ANY_VALUE", "APPROX_COUNT_DISTINCT", "APPROX_PERCENTILE", "APPROX_TOP_K", "APPROX_TOP_K_ACCUMULATE",
    "APPROX_TOP_K_COMBINE", "ARRAY_AGG", "AVG", "BITMAP_AND_AGG", "BITMAP_CONSTRUCT_AGG", "BITMAP_OR_AGG",
    "BIT_AND", "BIT_OR", "BIT_XOR", "BOOL_AND", "BOOL_OR", "COLLECT_LIST", "COLLECT_SET", "COLLECT_UNION", "CORR",
    "COUNT", "COUNT_IF", "COUNT_MIN_SKETCH", "COVAR_POP", "COVAR_SAMP", "EVERY", "FIRST", "FIRST_VALUE",
    "HISTOGRAM_NUMERIC", "HLL_SKETCH_AGG", "HLL_UNION_AGG", "KLL_MERGE_AGG_BIGINT", "KLL_MERGE_AGG_DOUBLE",
    "KLL_MERGE_AGG_FLOAT", "KLL_SKETCH_AGG_BIGINT", "KLL_SKETCH_AGG_DOUBLE", "KLL_SKETCH_AGG_FLOAT", "KURTOSIS",
    "LAST", "LAST_VALUE", "LISTAGG", "MAX", "MAX_BY", "MEAN", "MEDIAN", "MIN", "MIN_BY", "MODE", "PERCENTILE",
    "PERCENTILE_APPROX", "PERCENTILE_CONT", "PERCENTILE_DISC", "PRODUCT", "REGR_AVGX", "REGR_AVGY", "REGR_COUNT",
    "REGR_INTERCEPT", "REGR_R2", "REGR_SLOPE", "REGR_SXX", "REGR_SXY", "REGR_SYY", "SCHEMA_OF_VARIANT_AGG",
    "SKEWNESS", "SOME", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "STRING_AGG", "SUM", "THETA_INTERSECTION_AGG",
    "THETA_SKETCH_AGG", "THETA_UNION_AGG", "TRY_AVG", "TRY_SUM", "TUPLE_INTERSECTION_AGG_DOUBLE",
    "TUPLE_INTERSECTION_AGG_INTEGER", "TUPLE_SKETCH_AGG_DOUBLE", "TUPLE_SKETCH_AGG_INTEGER",
    "TUPLE_UNION_AGG_DOUBLE", "TUPLE_UNION_AGG_INTEGER", "VARIANCE", "VAR_POP", "VAR_SAMP", "VECTOR_AVG",
    "VECTOR_SUM",
})  # fmt: skip


def is_aggregate(node: exp.Expr) -> bool:
    """Return True for an aggregate call, with its FILTER or IGNORE NULLS."""
    if isinstance(node, exp.Filter | exp.IgnoreNulls | exp.WithinGroup):
        return is_aggregate(node.this)
    return isinstance(node, exp.AggFunc) or (isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES)


def has_aggregates(node: exp.Expr) -> bool:
    """Return True if the expression has an aggregate anywhere but under OVER and in a sub-query."""
    parts = node.walk(prune=lambda part: part is not node and isinstance(part, exp.Query))
    return any(
        is_aggregate(part) and not isinstance(part.find_ancestor(exp.Window, exp.Query), exp.Window) for part in parts
    )


GENERATORS = frozenset({
    "COLLATIONS", "EXPLODE", "EXPLODE_OUTER", "INLINE", "INLINE_OUTER", "JSON_TUPLE", "POSEXPLODE", "POSEXPLODE_OUTER",
    "SQL_KEYWORDS", "STACK", "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER",
})  # fmt: skip


def generator(node: exp.Expr) -> exp.Expr | None:
    """Return the call of a generator in an expression, if there is one."""
    return next((part for part in node.find_all(exp.Anonymous) if part.name.upper() in GENERATORS), None)
