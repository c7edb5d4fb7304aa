# ruff: noqa: E501 - a case a line
# fmt: off
"""Scripts that are refused or warned of, and how a reader takes the hint: what `check` then has to accept.

A case is the script, the code, what a reader takes from the hint (a pattern), what of the script they change
(a pattern; empty: all of it), and what they write there ({0} is the first group of what they took).
"""

from __future__ import annotations

from typing import NamedTuple

GIVEN = """CREATE STREAM s (page STRING, t TIMESTAMP, n INT, id BIGINT ASCENDING);
CREATE STREAM r (page STRING, n INT, u TIMESTAMP);
CREATE STREAM q (page STRING, n INT, u TIMESTAMP);
CREATE STREAM permits (n INT);
CREATE STREAM o (x INT, y STRING);
CREATE STREAM must (x INT NOT NULL, y STRING);
CREATE STREAM e (k STRING, a TIMESTAMP, b TIMESTAMP, n INT, u TIMESTAMP) EVENT SHAPE INTERVAL (a, b);
CREATE STREAM f (k STRING, a TIMESTAMP, b TIMESTAMP, n INT, u TIMESTAMP) EVENT SHAPE INTERVAL (a, b);
CREATE STREAM points (k STRING, a TIMESTAMP) EVENT SHAPE POINT (a);
CREATE STREAM edges (edge STRING, since TIMESTAMP, k STRING) EVENT SHAPE EDGE (edge, since);
CREATE STREAM timed (t TIMESTAMP, n INT) EVENT TIME (t, LAG INTERVAL '1' MINUTE);
CREATE TABLE names (page STRING, name STRING) USING parquet OPTIONS (path '/data/names');
"""


class Case(NamedTuple):
    script: str
    code: str
    taken: str
    old: str
    new: str
    codes: tuple[str, ...] = ()
    """What is said of the script all the same."""


HOUR = "FLOOR(s.ROWTIME TO HOUR)"
AS_OF = "FOR SYSTEM_TIME AS OF s.ROWTIME"
MINUTE = "INTERVAL '1' MINUTE"
OVER = "OVER (ORDER BY s.ROWTIME ROWS 3 PRECEDING)"
ON = "ON s.page = r.page"
TSORT = f"ORDER BY t WITHIN {MINUTE}"
FILE = "CREATE STREAM x (v INT, b STRING) USING csv OPTIONS "
INTO = "; CREATE PUMP p AS INSERT INTO x SELECT STREAM n, page FROM s"
READ = "; SELECT STREAM v FROM x"

JOINS = [
    Case(f"SELECT STREAM s.n FROM s JOIN r FOR SYSTEM_TIME AS OF r.ROWTIME {ON}", "R156", "Write (FOR .*)[.]$", "FOR .*? ON", "{0} ON"),
    Case(f"SELECT STREAM s.n FROM s RIGHT JOIN r {AS_OF} {ON}", "R156", "Write (JOIN) or (LEFT JOIN)", "RIGHT JOIN", "{1}"),
    Case(f"SELECT STREAM s.n FROM s RIGHT JOIN r {AS_OF} {ON}", "R156", "Write (JOIN) or", "RIGHT JOIN", "{0}"),
    Case(f"SELECT STREAM s.n FROM s OVER (RANGE {MINUTE} PRECEDING) JOIN r {AS_OF} {ON}", "R156", "compare (.*) in (WHERE)[.]$", " OVER .*", f" JOIN r {AS_OF} {ON} {{1}} {{0}} >= s.ROWTIME - {MINUTE}"),
    Case(f"SELECT STREAM s.n FROM s, r {AS_OF}", "R156", "(ON TRUE)", ", (.*)", rf" JOIN r {AS_OF} {{0}}"),
    Case(f"SELECT STREAM s.n FROM s JOIN r {AS_OF} ON s.n < r.n", "R156", "with WHERE", "ON (.*)", "ON TRUE WHERE s.n < r.n"),
    Case(f"SELECT STREAM s.n FROM s JOIN r {AS_OF} ON s.n = r.page", "R156", r"CAST\(… (AS INT)\)", "= r.page", "= CAST(r.page {0})"),
    Case(f"SELECT STREAM s.n FROM s JOIN r {AS_OF} ON UPPER(s.page) = r.page", "R156", r"view that casts it: SELECT STREAM (CAST.*), for", "", "CREATE VIEW c AS SELECT STREAM {0}, n FROM s; SELECT STREAM c.n FROM c JOIN r FOR SYSTEM_TIME AS OF c.ROWTIME ON c.cast_key = r.page"),
    Case(f"SELECT STREAM s.n FROM s JOIN names {AS_OF} ON s.page = names.page", "R156", "Leave FOR SYSTEM_TIME out", f" {AS_OF}", ""),
    Case(f"SELECT STREAM s.n FROM s JOIN r MATCH_CONDITION (s.ROWTIME >= r.ROWTIME) {ON}", "R156", "Write (ASOF JOIN)", "JOIN", "{0}"),
    Case("SELECT STREAM a.n FROM s AS a ASOF JOIN r ON a.page = r.page", "R156", r"Write (MATCH_CONDITION \(.*?\)),", " ON", " {0} ON"),
    Case("SELECT STREAM a.n FROM s AS a MATCH_CONDITION (n > 1)", "R156", "Write (FROM a .*)[.]$", "FROM .*", "FROM s AS a JOIN r FOR SYSTEM_TIME AS OF a.ROWTIME ON a.page = r.page"),
    Case(f"SELECT STREAM s.n FROM s JOIN r {AS_OF} {ON} JOIN q ON s.ROWTIME = q.ROWTIME", "R190", "sub-query or a view, and join that", "", f"CREATE VIEW j AS SELECT STREAM s.n FROM s JOIN r {AS_OF} {ON}; SELECT STREAM j.n FROM j JOIN q ON j.ROWTIME = q.ROWTIME"),
    Case("SELECT STREAM n FROM s JOIN s ON s.ROWTIME = s.ROWTIME", "R151", "name of its own with (AS)", "n FROM s JOIN s ON s.ROWTIME", "s.n FROM s JOIN s {0} other ON other.ROWTIME"),
    Case("SELECT STREAM s.page FROM s NATURAL JOIN (SELECT STREAM u FROM r) AS d", "R151", "Write (JOIN) … (ON)", "NATURAL JOIN (.*)", "{0} (SELECT STREAM u FROM r) AS d {1} s.ROWTIME = d.ROWTIME"),
    Case(f"SELECT STREAM s.page FROM s OVER (PARTITION BY page RANGE {MINUTE} PRECEDING) JOIN r {ON}", "R153", "leave it out", "PARTITION BY page ", ""),
    Case(f"SELECT STREAM s.page FROM s OVER (ROWS 5 PRECEDING) JOIN r {ON}", "R153", "(.*)[.]", "ROWS 5", f"RANGE {MINUTE}"),
    Case(f"SELECT STREAM page FROM s OVER (RANGE {MINUTE} PRECEDING)", "R153", r"aggregate: SUM\(x\) (OVER .*)[.]", "page FROM s .*", "SUM(n) {0} AS x FROM s"),
    Case("SELECT STREAM s.page FROM s JOIN names OVER (RANGE CURRENT ROW) ON s.page = names.page", "R153", "Leave out OVER", r" OVER \(.*?\)", ""),
    Case("SELECT STREAM s.page FROM s JOIN r ON s.ROWTIME = r.ROWTIME AND SUM(s.n) > r.n", "R116", "below, in a sub-query", "", "SELECT STREAM g.c FROM (SELECT STREAM SUM(n) AS c FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR) HAVING SUM(n) > 3) AS g JOIN r ON g.ROWTIME = r.ROWTIME"),
    Case("SELECT STREAM s.page FROM s JOIN r ON s.ROWTIME = r.ROWTIME AND MONOTONIC(s.n) > r.n", "R102", "Promise it in a sub-query", "", "SELECT STREAM g.page FROM (SELECT STREAM page, MONOTONIC(n) AS m FROM s) AS g JOIN r ON g.ROWTIME = r.ROWTIME AND g.m > r.n"),
    Case("SELECT STREAM s.page FROM s JOIN r ON s.ROWTIME = r.ROWTIME AND CURRENT_ROW_TIMESTAMP > r.u", "R112", "Select it below", "", "SELECT STREAM g.page FROM (SELECT STREAM page, CURRENT_ROW_TIMESTAMP AS c FROM s) AS g JOIN r ON g.ROWTIME = r.ROWTIME AND g.c > r.u"),
    Case("SELECT STREAM s.page FROM s JOIN r ON ROWTIME > s.t", "R150", r"Write (s\.ROWTIME)", "ROWTIME > s.t", "{0} = r.ROWTIME AND {0} > s.t"),
    Case("SELECT STREAM s.page FROM s RIGHT JOIN names ON s.page = names.page", "R154", "(LEFT JOIN) with the stream on the left", "RIGHT JOIN", "{0}"),
    Case("SELECT STREAM s.page FROM s LEFT SEMI JOIN names ON s.page = names.page", "R190", "Write (JOIN)", "LEFT SEMI JOIN", "{0}"),
    Case("SELECT STREAM s.page FROM s RIGHT ANTI JOIN r ON s.page = r.page AND s.ROWTIME = r.ROWTIME", "R190", r"Write (LEFT JOIN), and keep what found no match: (WHERE) b.k (IS NULL)", "RIGHT ANTI JOIN (.*)", "{0} r ON s.page = r.page AND s.ROWTIME = r.ROWTIME {1} r.page {2}"),
    Case("SELECT STREAM a.name FROM names AS a JOIN names AS b ON a.page = b.page", "R155", "Join a stream", "FROM names AS a", "FROM s JOIN names AS a ON s.page = a.page"),
    Case("SELECT STREAM page FROM s WHERE EXISTS (SELECT STREAM * FROM r WHERE r.page = s.page)", "R190", "(SEMI JOIN)", "page FROM .*", "s.page FROM s LEFT {0} r ON r.page = s.page AND s.ROWTIME = r.ROWTIME"),
    Case("SELECT STREAM k FROM e WHERE EXISTS (SELECT STREAM * FROM f WHERE f.k = e.k)", "R190", "(LEFT ANTI JOIN) b ON", "k FROM .*", "e.k FROM e {0} f ON f.k = e.k"),
    Case("SELECT STREAM k FROM e WHERE NOT EXISTS (SELECT STREAM * FROM f, points WHERE f.k = e.k)", "R190", r"Write (NOT EXISTS \(SELECT STREAM \* FROM )t", "NOT EXISTS.*", "{0}f WHERE f.k = e.k)"),
]
GROUPS = [
    Case(f"SELECT STREAM page, COUNT(*) AS c FROM s GROUP BY CUBE({HOUR}, page)", "R127", "(UNION ALL)", "", f"SELECT STREAM page, COUNT(*) AS c FROM s GROUP BY {HOUR}, page {{0}} SELECT STREAM CAST(NULL AS STRING) AS page, COUNT(*) AS c FROM s GROUP BY {HOUR}"),
    Case(f"SELECT STREAM COUNT(*) AS c FROM s GROUP BY FLOOR(t TO HOUR) WITHIN {MINUTE}, MONOTONIC(n)", "R182", "select a closing expression (AS ROWTIME)", "COUNT", "FLOOR(t TO HOUR) {0}, COUNT"),
    Case(f"SELECT STREAM page, COUNT(*) AS c FROM s GROUP BY {HOUR}, page ORDER BY t WITHIN {MINUTE}", "R181", "Sort .*(SELECT STREAM t AS ROWTIME), … (ORDER BY t WITHIN) …", "", f"SELECT STREAM page, COUNT(*) AS c FROM ({{0}}, page FROM s {{1}} {MINUTE}) AS s GROUP BY {HOUR}, page"),
    Case(f"SELECT STREAM page, COUNT(*) AS c FROM s GROUP BY {HOUR}, page ORDER BY 3", "R183", "Count from 1, or write the expression", "ORDER BY 3", f"ORDER BY {HOUR}"),
    Case(f"SELECT STREAM page, COUNT(*) AS c FROM s GROUP BY {HOUR}, page ORDER BY page", "R138", "ORDER BY (.*)[.]", "ORDER BY page", "ORDER BY {0}"),
    Case("SELECT STREAM n AS ROWTIME, page FROM s", "R188", r"counts: (timestamp_seconds\(n\)), (timestamp_millis\(n\)) or", "n AS", "{0} AS"),
    Case("SELECT STREAM MAKE_DATE(2024, 1, n) AS ROWTIME, page FROM s", "R188", r"example (CAST\(.* AS TIMESTAMP\))", "MAKE_DATE(.*?) AS", r"{0} AS"),
    Case(f"SELECT STREAM LISTAGG(page) WITHIN GROUP (ORDER BY n) AS l FROM s GROUP BY {HOUR}", "R190", "leave out the order", " WITHIN GROUP (.*?) AS", " AS"),
    Case(f"SELECT STREAM LISTAGG(page) WITHIN GROUP (ORDER BY n) AS l FROM s GROUP BY {HOUR}", "R190", "Order by the value itself", "ORDER BY n", "ORDER BY page"),
    Case(f"SELECT STREAM EXPLODE(COLLECT_LIST(n)) AS l FROM s GROUP BY {HOUR}", "R102", "make rows of them above", "", f"SELECT STREAM EXPLODE(l) AS x FROM (SELECT STREAM COLLECT_LIST(n) AS l FROM s GROUP BY {HOUR}) AS g"),
    Case("SELECT STREAM COUNT(*) AS c FROM s GROUP BY window(s.ROWTIME, '1 minute')", "R190", r"Write TUMBLE\(s.ROWTIME, INTERVAL '1' HOUR\), or (FLOOR\(s.ROWTIME TO HOUR\))", "window.*", "{0}"),
    Case("SELECT STREAM COUNT(*) AS c FROM s GROUP BY window(s.ROWTIME, '1 minute')", "R190", "Write (TUMBLE.*?), or", "window.*", "{0}"),
    Case(f"SELECT STREAM TUMBLE(s.ROWTIME, {MINUTE}) AS x FROM s", "R139", r"(STEP\(s.ROWTIME BY )interval\)", "TUMBLE.* AS", f"{{0}}{MINUTE}) AS"),
    Case(f"SELECT STREAM HOP_END(s.ROWTIME, {MINUTE}, {MINUTE}) AS x FROM s", "R139", r"FROM (TABLE\(HOP\(TABLE s, DESCRIPTOR\(ROWTIME\), )…", "HOP_END.*", f"window_end AS x FROM {{0}}{MINUTE}, {MINUTE}))"),
    Case(f"SELECT STREAM COUNT(*) AS c FROM s GROUP BY HOP(s.ROWTIME, {MINUTE})", "R113", "Intervals", rf"{MINUTE}\)", f"{MINUTE}, INTERVAL '1' HOUR)"),
    Case(f"SELECT STREAM n FROM TABLE(TUMBLE(TABLE s, t, {MINUTE}))", "R113", r"(DESCRIPTOR\(ROWTIME\))", "TABLE s, t", "TABLE s, {0}"),
    Case(f"SELECT STREAM n FROM TABLE(TUMBLE({MINUTE}))", "R141", r"Write (TABLE\(TUMBLE\(TABLE s, DESCRIPTOR\(ROWTIME\), )…", "TABLE.*", f"{{0}}{MINUTE}))"),
    Case(f"SELECT STREAM n FROM TABLE(TUMBLE((SELECT STREAM n, t AS window_end FROM s), DESCRIPTOR(ROWTIME), {MINUTE}))", "R119", "another name below", "window_end", "other_end"),
    Case(f"SELECT STREAM page FROM TABLE(SESSION(TABLE s PARTITION BY page, DESCRIPTOR(t), {MINUTE}))", "R104", "view: (.*) AS ROWTIME, … (ORDER BY .*)[.]$", "", f"CREATE VIEW d AS {{0}} AS ROWTIME, page FROM s {{1}}; SELECT STREAM page FROM TABLE(SESSION(TABLE d PARTITION BY page, DESCRIPTOR(ROWTIME), {MINUTE}))"),
    Case(f"SELECT STREAM page, COUNT(*) AS c FROM s GROUP BY n WINDOWED BY STAGGER (PARTITION BY page RANGE {MINUTE})", "R113", "behind PARTITION BY", "GROUP BY n WINDOWED BY STAGGER .PARTITION BY page", "WINDOWED BY STAGGER (PARTITION BY page, n"),
    Case(f"SELECT STREAM page FROM s GROUP BY page, SESSION(s.ROWTIME, {MINUTE}) WITHIN {MINUTE}", "R128", "view: (SELECT STREAM t AS ROWTIME), … (ORDER BY t WITHIN) interval", "", f"CREATE VIEW d AS {{0}}, page FROM s {{1}} {MINUTE}; SELECT STREAM page FROM d GROUP BY page, SESSION(d.ROWTIME, {MINUTE})"),
    Case(f"SELECT STREAM DISTINCT page, COUNT(*) AS c FROM s WINDOWED BY STAGGER (PARTITION BY page RANGE {MINUTE})", "R184", "sub-query w: (.*), … FROM .…. AS w", "", f"{{0}}, c FROM (SELECT STREAM page, COUNT(*) AS c FROM s WINDOWED BY STAGGER (PARTITION BY page RANGE {MINUTE})) AS w"),
    Case(f"SELECT STREAM DISTINCT page, COUNT(*) AS c FROM s GROUP BY {HOUR}, page", "R184", "closes the groups as well: (.*)[.]", "DISTINCT", "DISTINCT {0} AS h,"),
    Case(f"SELECT STREAM DISTINCT {HOUR} AS h, page FROM s ORDER BY page", "R138", "ORDER BY (.*)[.]", "ORDER BY page", "ORDER BY {0}"),
    Case(f"SELECT STREAM page, t AS ROWTIME, COUNT(*) AS c FROM s GROUP BY {HOUR}, page, t", "R126", "Select (.* AS ROWTIME)[.]", "t AS ROWTIME", "{0}"),
    Case("SELECT STREAM n FROM s WHERE COUNT(*) > 3", "R116", "Use (HAVING)", "n FROM s WHERE", f"COUNT(*) AS c FROM s GROUP BY {HOUR} {{0}}"),
    Case("SELECT STREAM n FROM s WHERE MONOTONIC(n) > 3", "R102", "sub-query below", "", "SELECT STREAM m FROM (SELECT STREAM MONOTONIC(n) AS m FROM s) AS x WHERE m > 3"),
    Case(f"SELECT STREAM *, COUNT(*) AS c FROM s GROUP BY {HOUR}", "R129", "Name the columns", r"\*, COUNT", f"{HOUR} AS h, COUNT"),
    Case("SELECT STREAM page, COUNT(*) AS c FROM s GROUP BY page WITH UNBOUNDED STATE", "R185", "something that ascends as well", "BY page WITH UNBOUNDED STATE", f"BY page, {HOUR}"),
]
OVERS = [
    Case("SELECT STREAM SUM(n) OVER (ROWS BETWEEN CURRENT ROW AND 4 FOLLOWING) AS x FROM s", "R162", r"frame with (CURRENT ROW) or (PRECEDING)", "CURRENT ROW AND 4 FOLLOWING", "4 {1} AND {0}"),
    Case("SELECT STREAM SUM(n) OVER (ROWS BETWEEN 0 PRECEDING AND 4 PRECEDING) AS x FROM s", "R161", "Write the earlier end first", "0 PRECEDING AND 4 PRECEDING", "4 PRECEDING AND 0 PRECEDING"),
    Case("SELECT STREAM SUM(n) OVER (ROWS BETWEEN -4 PRECEDING AND CURRENT ROW) AS x FROM s", "R161", "example (ROWS 3 PRECEDING), or (RANGE .*)[.]", "ROWS .* ROW", "{0}"),
    Case("SELECT STREAM SUM(n) OVER (ROWS BETWEEN -4 PRECEDING AND CURRENT ROW) AS x FROM s", "R161", "or (RANGE .*)[.]", "ROWS .* ROW", "{0}"),
    Case("SELECT STREAM SUM(n) OVER (RANGE INTERVAL '1' MONTH PRECEDING) AS x FROM s", "R161", "take days", "'1' MONTH", "'30' DAY"),
    Case("SELECT STREAM SUM(n) OVER (ORDER BY n RANGE INTERVAL '1' DAY PRECEDING) AS x FROM s", "R164", "(ORDER BY .*)[.]", "ORDER BY n", "{0}"),
    Case("SELECT STREAM COUNT(DISTINCT n) OVER () AS x FROM s", "R163", r"beginning, (RANGE .*?) or (ROWS 100 PRECEDING); or count in groups, with (GROUP BY .*)[.]", r"\(\) AS", "({0}) AS"),
    Case("SELECT STREAM COUNT(DISTINCT n) OVER () AS x FROM s", "R163", "or (ROWS 100 PRECEDING);", r"\(\) AS", "({0}) AS"),
    Case("SELECT STREAM COUNT(DISTINCT n) OVER () AS x FROM s", "R163", "with (GROUP BY .*)[.]", r"OVER \(\) AS x FROM s", "AS x FROM s {0}"),
    Case("SELECT STREAM SUM(DISTINCT n) OVER (ROWS 3 PRECEDING) AS x FROM s", "R163", r"one: (COUNT\(DISTINCT CONCAT_WS\('[|]', )a, b", r"SUM\(DISTINCT n\)", "{0}page, n))"),
    Case("SELECT STREAM DENSE_RANK() OVER () AS x FROM s", "R163", r"Write (DENSE_RANK\(\) OVER \(.*?\)),", r"DENSE_RANK.* AS", "{0} AS"),
    Case("SELECT STREAM COLLECT_LIST(n) OVER () AS x FROM s", "R163", "(GROUP BY)[.]", r"OVER \(\) AS x FROM s", f"AS x FROM s {{0}} {HOUR}"),
    Case("SELECT STREAM LAG(n, 2) IGNORE NULLS OVER () AS x FROM s", "R163", "(ROWS 100 PRECEDING)", r"\(\) AS", "({0}) AS"),
    Case("SELECT STREAM LAG(n, -1) OVER () AS x FROM s", "R163", "whole number from (.) on", "-1", "1"),
    Case("SELECT STREAM EXP_AVG(n, 3) OVER () AS x FROM s", "R163", "example EXP_AVG.price, (INTERVAL '10' SECOND)", "3", "{0}"),
    Case("SELECT STREAM LAG(n) FILTER (WHERE n > 0) OVER () AS x FROM s", "R163", "Filter in a sub-query with (WHERE)", "LAG.*", "LAG(n) OVER () AS x FROM (SELECT STREAM n FROM s {0} n > 0) AS f"),
    Case("SELECT STREAM SUM(n) OVER w AS x FROM s", "R165", "(WINDOW w AS) .…. at the end", "$", " {0} (ROWS 3 PRECEDING)"),
    Case("SELECT STREAM SUM(n) OVER w AS x FROM s WINDOW v AS (ROWS 3 PRECEDING)", "R165", "are: (.*)[.]", "OVER w", "OVER {0}"),
    Case("SELECT STREAM n FROM s WHERE MAX(n) OVER () > 3", "R160", "sub-query or a view, and use its column", "", "SELECT STREAM n FROM (SELECT STREAM n, MAX(n) OVER () AS m FROM s) AS x WHERE m > 3"),
    Case("SELECT STREAM SUM(n) OVER (w PARTITION BY n) AS x FROM s WINDOW w AS (PARTITION BY page ROWS 3 PRECEDING)", "R165", "Leave one out", " PARTITION BY n", ""),
    Case("SELECT STREAM SUM(n) OVER () AS x FROM s KEYS EXPIRE AFTER INTERVAL '1' DAY", "R190", "Give the window (PARTITION BY), or", r"\(\)", "({0} page)"),
    Case("SELECT STREAM SUM(n) OVER () AS x FROM s KEYS EXPIRE AFTER INTERVAL '1' DAY", "R190", "leave it out", " KEYS.*", ""),
    Case("SELECT STREAM n FROM s QUALIFY SUM(n) OVER (ROWS 3 PRECEDING) > 1", "R187", "sub-query, and write the condition in (WHERE) above", "", "SELECT STREAM n FROM (SELECT STREAM n, SUM(n) OVER (ROWS 3 PRECEDING) AS x FROM s) AS y {0} x > 1"),
    Case("CREATE VIEW m AS SELECT STREAM t, n, t < MAX(t) OVER (ROWS BETWEEN 9 PRECEDING AND 1 PRECEDING) AS late FROM s; SELECT STREAM n FROM m WHERE NOT late", "R166", r"COALESCE\(MAX\(t\) OVER .…., t\)", "t < (MAX.*) AS late", "t < COALESCE(MAX(t) OVER (ROWS BETWEEN 9 PRECEDING AND 1 PRECEDING), t) AS late"),
]
EVENTS = [
    Case("SELECT STREAM k FROM e ORDER BY k", "R193", "a T-sort stands above a view that EMITs", "", f"CREATE VIEW l AS SELECT STREAM k, n FROM e EMIT INTERVALS (since, until); SELECT STREAM since AS ROWTIME, k FROM l ORDER BY since WITHIN {MINUTE}"),
    Case("SELECT STREAM n, a AS ROWTIME FROM e", "R193", r"(SHIFT\()s, interval", "n, a AS ROWTIME FROM e", f"n FROM {{0}}e, {MINUTE})"),
    Case("SELECT STREAM DISTINCT k FROM e", "R193", r"(SNAPSHOT\(\))", "DISTINCT k FROM e", "k FROM e GROUP BY k, {0}"),
    Case("SELECT STREAM k FROM e LIMIT 3", "R193", "above a view that EMITs", "", "CREATE VIEW l AS SELECT STREAM k FROM e EMIT POINTS; SELECT STREAM k FROM l LIMIT 3"),
    Case("SELECT STREAM SUM(n) OVER (ROWS 2 PRECEDING) AS x FROM e", "R193", r"Group by (SNAPSHOT\(\))", "SUM.*", "SUM(n) AS x FROM e GROUP BY {0}"),
    Case("SELECT STREAM COUNT(*) AS c FROM e GROUP BY COUNT_WINDOW(0)", "R196", r"example (COUNT_WINDOW\(10\))", r"COUNT_WINDOW\(0\)", "{0}"),
    Case("SELECT STREAM k, COUNT(*) AS c FROM e GROUP BY k", "R196", r": (SNAPSHOT\(\)), (TUMBLE\(.*?\)), (HOP\(.*?\)) or (COUNT_WINDOW\(10\))", "BY k", "BY k, {0}"),
    Case("SELECT STREAM k, COUNT(*) AS c FROM e GROUP BY k", "R196", r", (TUMBLE\(.*?\)), (HOP\(.*?\)) or (COUNT_WINDOW\(10\))", "BY k", "BY k, {0}"),
    Case("SELECT STREAM k, COUNT(*) AS c FROM e GROUP BY k", "R196", r"(HOP\(.*?\)) or (COUNT_WINDOW\(10\))", "BY k", "BY k, {0}"),
    Case("SELECT STREAM k, COUNT(*) AS c FROM e GROUP BY k", "R196", r" or (COUNT_WINDOW\(10\))", "BY k", "BY k, {0}"),
    Case("SELECT STREAM COUNT(*) AS c FROM e GROUP BY HOP(INTERVAL '1' HOUR)", "R196", r"(HOP\(.*?\)) or", r"HOP\(.*\)", "{0}"),
    Case("SELECT STREAM COUNT(*) AS c FROM e GROUP BY TUMBLE(INTERVAL '1' HOUR, 'unchanged')", "R196", "There are ('[a-z_ ]+')", "'unchanged'", "{0}"),
    Case("SELECT STREAM MAX(LIFETIME_END(e)) AS c FROM e GROUP BY SNAPSHOT()", "R198", "GROUP BY (TUMBLE) or HOP", r"SNAPSHOT\(\)", "{0}(INTERVAL '1' HOUR)"),
    Case("SELECT STREAM MAX(LIFETIME_END(e)) AS c FROM e GROUP BY SNAPSHOT()", "R198", "GROUP BY TUMBLE or (HOP)", r"SNAPSHOT\(\)", "{0}(INTERVAL '1' MINUTE, INTERVAL '1' HOUR)"),
    Case("SELECT STREAM FIRST(n) AS c FROM e GROUP BY SNAPSHOT()", "R193", "Take (MIN), (MAX), (ARRAY_SORT.COLLECT_SET.)x", r"FIRST\(n\)", "STRUCT({0}(n), {1}(n), {2}n)))"),
    Case("SELECT STREAM MIN_BY(k, n) AS c FROM e GROUP BY SNAPSHOT()", "R193", r"or (MIN\(STRUCT\()y, x(\)\).)x for", r"MIN_BY\(k, n\)", "{0}n, k{1}k"),
    Case("SELECT STREAM e.k FROM e JOIN s ON e.k = s.page", "R197", "read a view that EMITs", "", "CREATE VIEW l AS SELECT STREAM k FROM e EMIT POINTS; SELECT STREAM l.k FROM l JOIN s ON l.k = s.page AND l.ROWTIME = s.ROWTIME"),
    Case("SELECT STREAM e.k FROM e JOIN s ON e.k = s.page", "R197", "Declare an (EVENT SHAPE) for both", "", "CREATE STREAM sh (page STRING, t TIMESTAMP) {0} POINT (t); SELECT STREAM e.k FROM e JOIN sh ON e.k = sh.page"),
    Case("SELECT STREAM e.ROWTIME FROM e JOIN f ON e.k = f.k", "R193", "Write (e.ROWTIME AS .*)[.]", "e.ROWTIME", "{0}"),
    Case("SELECT STREAM e.k FROM e FULL JOIN f ON e.k = f.k", "R190", "are (JOIN), (LEFT JOIN) and (LEFT ANTI JOIN)", "FULL JOIN", "{0}"),
    Case("SELECT STREAM e.k FROM e FULL JOIN f ON e.k = f.k", "R190", ", (LEFT JOIN) and (LEFT ANTI JOIN)", "FULL JOIN", "{0}"),
    Case("SELECT STREAM e.k FROM e FULL JOIN f ON e.k = f.k", "R190", "and (LEFT ANTI JOIN)", "FULL JOIN", "{0}"),
    Case("SELECT STREAM k FROM e UNION ALL SELECT STREAM page FROM s", "R197", "EMIT the events in a view", "", "CREATE VIEW l AS SELECT STREAM k FROM e EMIT POINTS; SELECT STREAM k FROM l UNION ALL SELECT STREAM page FROM s"),
    Case("CREATE STREAM x (a TIMESTAMP ASCENDING, n INT) EVENT SHAPE POINT (a); SELECT STREAM n FROM x", "R190", "Leave one of the two out", " ASCENDING", ""),
    Case("CREATE STREAM x (a BIGINT, n INT) EVENT SHAPE POINT (a); SELECT STREAM n FROM x", "R170", r"Write (RESOLUTION MILLISECONDS) behind", r"\(a\);", "(a) {0};"),
    Case("CREATE STREAM x (a DOUBLE, n INT) EVENT SHAPE POINT (a); SELECT STREAM n FROM x", "R170", r"Declare a (TIMESTAMP), or a (BIGINT) with (RESOLUTION MILLISECONDS)", "DOUBLE", "{0}"),
    Case("CREATE STREAM x (a DOUBLE, n INT) EVENT SHAPE POINT (a); SELECT STREAM n FROM x", "R170", r"or a (BIGINT) with (RESOLUTION MILLISECONDS)", r"DOUBLE(.*)\(a\)", "{0}, n INT) EVENT SHAPE POINT (a) {1}"),
    Case("CREATE STREAM x (a TIMESTAMP, n INT) EVENT SHAPE POINT (a) RESOLUTION SECONDS; SELECT STREAM n FROM x", "R170", "Leave RESOLUTION out", " RESOLUTION SECONDS", ""),
    Case("SELECT STREAM page FROM s EMIT POINTS", "R191", "Leave it out", " EMIT POINTS", ""),
    Case("SELECT STREAM k, n AS start FROM e EMIT INTERVALS (start, until)", "R119", r"(rename) start of the query", "AS start", "AS start_of_it"),
    Case("SELECT STREAM k, n AS start FROM e EMIT INTERVALS", "R119", r"Name them: (EMIT .*?\));", "EMIT INTERVALS", "{0}"),
    Case("SELECT STREAM k FROM e EMIT EDGES (x, y, z) FULLY ORDERED", "R192", "Leave the order out", " FULLY ORDERED", ""),
    Case("SELECT STREAM k FROM e EMIT EDGES (x, y, z) FULLY ORDERED", "R192", "or (EMIT INTERVALS) … (FULLY ORDERED)", "EMIT EDGES .*", "{0} (x, y) {1}"),
    Case("SELECT STREAM e.k FROM e JOIN f ON e.k = f.k AND LIFETIME(e) PRECEDES LIFETIME(f)", "R198", "(FROM .*)[.]$", "FROM .*? ON (e.k = f.k) AND .*", "{0} ON e.k = f.k"),
    Case("SELECT STREAM e.k FROM e LEFT JOIN f ON e.k = f.k AND LIFETIME(e) CONTAINS LIFETIME(f)", "R198", "inside (JOIN) it can stand", "LEFT JOIN", "{0}"),
    Case("SELECT STREAM e.k FROM e WHERE COALESCE(LIFETIME(e) CONTAINS u, TRUE)", "R198", "by (AND), OR and NOT", r"COALESCE\((.*), TRUE\)", "LIFETIME(e) CONTAINS u {0} TRUE"),
    Case("SELECT STREAM LIFETIME(e) CONTAINS u AS x FROM e", "R198", "It stands in (WHERE)", "LIFETIME.*", "k FROM e {0} LIFETIME(e) CONTAINS u"),
]
PANES = [
    Case("SELECT STREAM COUNT(*) AS c FROM timed GROUP BY PANES(timed.ROWTIME, DURATION INTERVAL '1' HOUR)", "R170", r"Write (PANES\(t, )…", r"PANES\(timed.ROWTIME, ", "{0}"),
    Case("SELECT STREAM COUNT(*) AS c FROM timed GROUP BY PANES(t, DURATION INTERVAL '1' HOUR), PANES(t, DURATION INTERVAL '2' HOUR)", "R170", "a query for each", "", "SELECT STREAM COUNT(*) AS c FROM timed GROUP BY PANES(t, DURATION INTERVAL '1' HOUR); SELECT STREAM COUNT(*) AS c FROM timed GROUP BY PANES(t, DURATION INTERVAL '2' HOUR)"),
    Case("SELECT STREAM PANE_END AS ROWTIME, COUNT(*) AS c FROM timed GROUP BY PANES(t, DURATION INTERVAL '1' HOUR)", "R170", "Leave it out", "PANE_END AS ROWTIME, ", ""),
    Case("CREATE VIEW x EVENT TIME (t, MODE INPUT_WATERMARK, LAG INTERVAL '1' HOUR) AS SELECT STREAM t FROM timed", "R170", "Leave LAG and MINIMUM GAP out", ", LAG INTERVAL '1' HOUR", ""),
    Case("CREATE VIEW x EVENT TIME (t, MODE INPUT_WATERMARK, LAG INTERVAL '1' HOUR) AS SELECT STREAM t FROM timed", "R170", "or take (OUTPUT_EVENT_TIME)", "INPUT_WATERMARK", "{0}"),
    Case("CREATE VIEW x EVENT TIME (t, MODE INPUT_WATERMARK, EARLY BEYOND INTERVAL '1' HOUR) AS SELECT STREAM t FROM timed", "R170", "Put (EARLY BEYOND) where the event time below", "", "CREATE VIEW y EVENT TIME (t, {0} INTERVAL '1' HOUR) AS SELECT STREAM t FROM s; CREATE VIEW x EVENT TIME (t, MODE INPUT_WATERMARK) AS SELECT STREAM t FROM y"),
    Case("CREATE STREAM x (t TIMESTAMP) EVENT TIME (t, MODE INPUT_WATERMARK)", "R170", "Take (OUTPUT_EVENT_TIME) or (MANUAL)", "INPUT_WATERMARK", "{0}"),
    Case("CREATE STREAM x (t TIMESTAMP) EVENT TIME (t, MODE INPUT_WATERMARK)", "R170", "or (MANUAL)", "INPUT_WATERMARK", "{0}"),
    Case("CREATE VIEW x EVENT TIME (t, MODE INPUT_WATERMARK) AS SELECT STREAM t FROM s", "R170", "or write (MODE .*)[.]", "MODE INPUT_WATERMARK", "{0}"),
    Case("CREATE VIEW x EVENT TIME (t, MODE INPUT_WATERMARK) AS SELECT STREAM t FROM s", "R170", "Declare one below and pass its column on", "", "CREATE VIEW y EVENT TIME (t) AS SELECT STREAM t FROM s; CREATE VIEW x EVENT TIME (t, MODE INPUT_WATERMARK) AS SELECT STREAM t FROM y"),
    Case("CREATE VIEW x EVENT TIME (t, LAG INTERVAL n MINUTE) AS SELECT STREAM t, n FROM s", "R122", "example (INTERVAL '10' SECOND)", "INTERVAL n MINUTE", "{0}"),
    Case("CREATE VIEW x EVENT TIME (t, RESOLUTION SECONDS) AS SELECT STREAM t FROM s", "R170", "Leave RESOLUTION out", ", RESOLUTION SECONDS", ""),
    Case("CREATE STREAM x (m BIGINT) EVENT TIME (m); SELECT STREAM m FROM x", "R170", r"Write (EVENT TIME \(m, RESOLUTION MILLISECONDS\))", r"EVENT TIME \(m\)", "{0}"),
    Case("CREATE STREAM x (m STRING) EVENT TIME (m); SELECT STREAM m FROM x", "R170", "Declare a (TIMESTAMP), or a (BIGINT) with (RESOLUTION MILLISECONDS)", "STRING", "{0}"),
    Case("CREATE STREAM x (m STRING) EVENT TIME (m); SELECT STREAM m FROM x", "R170", "or a (BIGINT) with (RESOLUTION MILLISECONDS)", r"STRING(.*)\(m\)", "{0}) EVENT TIME (m, {1})"),
    Case("SELECT STREAM n FROM STREAM(GATE(TABLE s, TABLE permits)) AS x", "R152", "Write (WITH UNBOUNDED STATE) behind", "$", " {0}"),
    Case("SELECT STREAM n FROM STREAM(GATE(TABLE s)) AS x WITH UNBOUNDED STATE", "R141", r"Write (STREAM\(GATE\(TABLE s, TABLE permits\)\)), or (GATE.*?\)) with", r"STREAM\(GATE.*?\)\)", "{0}"),
    Case("SELECT STREAM n FROM STREAM(GATE(TABLE s)) AS x WITH UNBOUNDED STATE", "R141", r"or (GATE.*?\)) with", r"GATE\(TABLE s\)", "{0}"),
    Case("SELECT STREAM n FROM STREAM(DELAY(TABLE s, INTERVAL n MINUTE)) AS x", "R141", r"Write (STREAM\(DELAY.*)[.]", "STREAM.DELAY.*? AS", "{0} AS"),
    Case("SELECT STREAM n FROM STREAM(SAMPLE(TABLE s, 10)) AS x", "R141", r"Write (STREAM\(SAMPLE.*) PARTITION BY k(.*\)\)), with", r"STREAM\(SAMPLE.*?\)\)", "{0} PARTITION BY page{1}"),
    Case("CREATE STREAM x (m MAP<STRING, INT>); SELECT STREAM m FROM STREAM(SAMPLE(TABLE x PARTITION BY m, 10)) AS y", "R113", "Take (map_entries) of it", "SELECT.*", "CREATE VIEW w AS SELECT STREAM {0}(m) AS m FROM x; SELECT STREAM m FROM STREAM(SAMPLE(TABLE w PARTITION BY m, 10)) AS y"),
    Case("ALTER VIEW d SET ROWTIME BOUND TIMESTAMP '2024-01-01'; CREATE VIEW d AS SELECT STREAM n FROM s; SELECT STREAM n FROM d", "R171", r"Write EVENT TIME \(t, MODE MANUAL\), or (t AS ROWTIME)", "SELECT STREAM n FROM s", f"SELECT STREAM {{0}}, n FROM s {TSORT}"),
    Case("ALTER VIEW d SET ROWTIME BOUND TIMESTAMP '2024-01-01'; CREATE VIEW d AS SELECT STREAM n FROM s; SELECT STREAM n FROM d", "R171", r"Write (EVENT TIME \(t, MODE MANUAL\))", "AS SELECT STREAM n FROM s", "{0} AS SELECT STREAM n, t FROM s"),
]
STATEMENTS = [
    Case("CREATE STREAM x (v ARRAY<INT> ASCENDING); SELECT STREAM v FROM x", "R140", "Take numbers, texts", "ARRAY<INT>", "INT"),
    Case("CREATE STREAM x (v INT STRICTLY ASCENDING WITHIN 9 ROWS); SELECT STREAM v FROM x", "R140", "Leave out STRICTLY", "STRICTLY ", ""),
    Case("CREATE STREAM x (v STRING ASCENDING WITHIN INTERVAL '1' HOUR); SELECT STREAM v FROM x", "R140", "Count rows: (.*)[.]", r"v STRING ASC.*?\)", "{0})"),
    Case("CREATE STREAM x (v INTERVAL YEAR TO MONTH); SELECT STREAM v FROM x", "R189", "months: (.*)[.]", r"v INT.*?\)", "{0})"),
    Case("SELECT STREAM make_ym_interval(1, n) AS y FROM s", "R189", "Add it to a date", "AS y", "+ DATE'2024-01-01' AS y"),
    Case("SELECT STREAM make_ym_interval(1, n) AS y FROM s", "R189", "count the months as a number", r"make_ym_interval\(1, n\)", "12 + n"),
    Case("SELECT STREAM n FROM s LIMIT 3 OFFSET 1", "R186", "Leave it out", " OFFSET 1", ""),
    Case("WITH RECURSIVE x AS (SELECT STREAM n FROM s) SELECT STREAM n FROM x", "R123", "WITH without RECURSIVE", " RECURSIVE", ""),
    Case("CREATE STREAM x (v INT) EARLY BEYOND INTERVAL '1' DAY RESYNC AFTER 0 ROWS; SELECT STREAM v FROM x", "R122", "example (RESYNC AFTER 3 ROWS)", "RESYNC AFTER 0 ROWS", "{0}"),
    Case("CREATE STREAM x (v INT ASCENDING, t TIMESTAMP) EARLY BEYOND INTERVAL '1' DAY RESYNC AFTER 3 ROWS; SELECT STREAM v FROM x", "R190", "RESYNC in a T-sort: (ORDER BY t WITHIN) … (EARLY BEYOND) …", "EARLY BEYOND (.*); (.*)", f"; SELECT STREAM t AS ROWTIME, v FROM x {{0}} {MINUTE} {{1}} INTERVAL '1' DAY RESYNC AFTER 3 ROWS"),
    Case("CREATE STREAM x (v INT, t TIMESTAMP) EARLY BEYOND INTERVAL '1' DAY RESYNC AFTER 3 ROWS; INSERT INTO x SELECT STREAM n, t FROM s; SELECT STREAM v FROM x", "R190", "query of the pump, (ORDER BY t WITHIN) … (EARLY BEYOND) …, and leave it out here", "", f"CREATE STREAM x (v INT, t TIMESTAMP); INSERT INTO x SELECT STREAM t AS ROWTIME, n, t FROM s {{0}} {MINUTE} {{1}} INTERVAL '1' DAY RESYNC AFTER 3 ROWS; SELECT STREAM v FROM x"),
    Case("CREATE VIEW x AS SELECT STREAM n FROM s; CREATE VIEW x AS SELECT STREAM page FROM s", "R203", "Write (CREATE OR REPLACE VIEW)", "; CREATE VIEW", "; {0}"),
    Case("INSERT INTO o (x) SELECT STREAM n FROM s; INSERT INTO o (x) SELECT STREAM n FROM r", "R203", r"name: (CREATE PUMP) … (AS INSERT INTO o) …", "; INSERT INTO o", "; {0} other {1}"),
    Case("CREATE VIEW x (a, b) AS SELECT STREAM n FROM s; SELECT STREAM a FROM x", "R118", "Give each a name", "n FROM s", "n, page FROM s"),
    Case("INSERT INTO o (x) SELECT STREAM n, page FROM s", "R132", "one column for each", "n, page", "n"),
    Case("INSERT INTO o (x, z) SELECT STREAM n, page FROM s", "R103", "It has x, (y)", "x, z", "x, {0}"),
    Case("INSERT INTO o (ROWTIME, x) SELECT STREAM n FROM s", "R132", "one column for each", "STREAM n", "STREAM t, n"),
    Case("INSERT INTO o (ROWTIME, x) SELECT STREAM * FROM s", "R222", r"(SELECT STREAM t AS ROWTIME), a FROM \(…\) AS q", "INSERT.*", "INSERT INTO o (x) {0}, n FROM (SELECT STREAM t, n FROM s) AS q"),
    Case("INSERT INTO must (y) SELECT STREAM page FROM s", "R221", "Add (x) to the list", r"\(y\) SELECT STREAM page", "({0}, y) SELECT STREAM n, page"),
    Case("INSERT INTO o (x) SELECT STREAM page FROM s", "R220", r"as in CAST.… (AS INT)\)", "STREAM page", "STREAM CAST(page {0})"),
    Case("INSERT INTO o (x) SELECT STREAM page FROM s", "R220", r"(AS INT)\).*with (TRY_CAST)", "STREAM page", "STREAM {1}(page {0})"),
    Case("CREATE OR REPLACE STREAM s (page STRING, n INT); CREATE STREAM s (n INT); SELECT STREAM n FROM s", "R203", "Write (CREATE OR REPLACE STREAM)", "CREATE STREAM", "{0}"),
    Case("SELECT STREAM n FROM (VALUES (1)) AS v (n)", "R190", "Name a stream", r"\(VALUES .*", "s"),
    Case("SELECT STREAM t AS ROWTIME FROM s UNION ALL SELECT STREAM u FROM r ORDER BY t WITHIN INTERVAL '1' MINUTE", "R121", "Select (t AS ROWTIME) in each; then (ORDER BY ROWTIME WITHIN) …", "", f"SELECT STREAM {{0}} FROM s UNION ALL SELECT STREAM u AS ROWTIME FROM r {{1}} {MINUTE}"),
    Case("SELECT STREAM page FROM s UNION ALL SELECT STREAM page, n FROM r", "R115", "same number of columns", ", n", ""),
    Case(f"SELECT STREAM h AS ROWTIME, c FROM (SELECT STREAM {HOUR} AS h, COUNT(*) AS c FROM s GROUP BY {HOUR}) AS g ORDER BY h WITHIN {MINUTE} EARLY BEYOND INTERVAL '1' DAY AFTER ARRIVAL", "R112", "Sort below", "", f"SELECT STREAM {HOUR} AS h, COUNT(*) AS c FROM (SELECT STREAM t AS ROWTIME, n FROM s {TSORT} EARLY BEYOND INTERVAL '1' DAY AFTER ARRIVAL) AS s GROUP BY {HOUR}"),
    Case("SELECT STREAM page, n AS page FROM s", "R119", "another name with AS", "AS page", "AS number"),
    Case("SELECT STREAM nn FROM s", "R103", "Did you mean (.*)[?]", "nn", "{0}"),
    Case('CREATE STREAM "query.w" (v INT); WITH w AS (SELECT STREAM n FROM s) SELECT STREAM n FROM w', "R203", "another name", "w AS(.*)FROM w", "ww AS (SELECT STREAM n FROM s) SELECT STREAM n FROM ww"),
    Case("SELECT STREAM k FROM (SELECT STREAM k FROM e EMIT CHANGES) AS x", "R101", "(CREATE VIEW) name AS SELECT … EMIT …", "", "{0} name AS SELECT STREAM k FROM e EMIT CHANGES; SELECT STREAM k FROM name"),
    Case("SELECT STREAM date_format(current_time(), 'HH:mm:ss') AS x FROM s", "R111", r"start: (date_format\(.*\))", "date_format.* AS", "{0} AS"),
    Case("CREATE FUNCTION f AS 'x'", "R141", "(CREATE FUNCTION f AS) 'package.module:Class'", "CREATE.*", "{0} 'rowtime.core.shared_paths:sync'"),
]
FILES = [
    Case(f"{FILE}(header true){READ}", "R207", r"Add OPTIONS \((path .*)\)", "header", "{0}, header"),
    Case(f"{FILE}(header true){INTO}", "R207", r"Add OPTIONS \((path .*)\)", "header", "{0}, header"),
    Case(f"{FILE}(path '/x', partitionOverwriteMode 'dynamic'){INTO}", "R542", "Leave it out", ", partitionOverwriteMode 'dynamic'", ""),
    Case("CREATE STREAM x (v DOUBLE, b STRING) USING json PARTITIONED BY (v) OPTIONS (path '/o')" + INTO, "R570", "of type DATE, (STRING)", "BY [(]v", "BY (b"),
    Case("CREATE STREAM x (v INT, b STRING) USING json PARTITIONED BY (v, b) OPTIONS (path '/o', rowtime.column '')" + INTO, "R504", "Leave (one) out", "v, b[)] OPT", "v) OPT"),
    Case("CREATE STREAM x (v INT, b STRING) USING parquet PARTITIONED BY (b) OPTIONS (path '/o'); SELECT STREAM v FROM x", "R596", "", "PARTITIONED BY .b.", ""),
    Case(f"{FILE}(path '/x', header true, HEADER false){READ}", "R541", "Keep one of the two", ", HEADER false", ""),
    Case(f"{FILE}(path '/x', haeder true){READ}", "R540", "Did you mean (.*)[?]", "haeder", "{0}"),
    Case(f"{FILE}(path '/x', compression 'gzi'){INTO}", "R541", "Did you mean (.*)[?]", "'gzi'", "'{0}'"),
    Case("CREATE STREAM x (v ARRAY<INT>) USING csv OPTIONS (path '/x'); CREATE PUMP p AS INSERT INTO x SELECT STREAM ARRAY(n) FROM s", "R530", r"JSON or (Parquet)", "csv", "parquet"),
    Case("CREATE STREAM x (v ARRAY<INT>) USING csv OPTIONS (path '/x'); CREATE PUMP p AS INSERT INTO x SELECT STREAM ARRAY(n) FROM s", "R530", r"or as text \((to_json)\)", "ARRAY<INT>(.*) ARRAY.n.", "STRING) USING csv OPTIONS (path '/x'); CREATE PUMP p AS INSERT INTO x SELECT STREAM {0}(ARRAY(n))"),
    Case("CREATE STREAM x (v INT) USING kafka OPTIONS (subscribe 't'); SELECT STREAM v FROM x", "R504", r"OPTIONS \((kafka.*?), …", "subscribe", "{0}, subscribe"),
    Case("CREATE STREAM x (v INT) USING kafka OPTIONS (kafka.bootstrap.servers 'h:1'); SELECT STREAM v FROM x", "R504", r"OPTIONS \((subscribe.*?), …", "kafka.boot", "{0}, kafka.boot"),
    Case("CREATE STREAM x (v INT, b STRING) USING kafka OPTIONS (kafka.bootstrap.servers 'h:1')" + INTO, "R504", r"OPTIONS \((topic .*?), …", "kafka.boot", "{0}, kafka.boot"),
    Case("CREATE STREAM x (v INT, b STRING) USING kafka OPTIONS (topic 't')" + INTO, "R504", r"OPTIONS \((kafka.*?), …", "topic", "{0}, topic"),
    Case("CREATE STREAM x (change STRING, b STRING) USING kafka OPTIONS (topic 't', kafka.bootstrap.servers 'h:1', mode 'changes'); CREATE VIEW c AS SELECT STREAM n, k FROM e EMIT CHANGES; CREATE PUMP p AS INSERT INTO x SELECT STREAM change, k FROM c", "R504", r"OPTIONS \(mode 'changes', (key.columns )'", "mode", "{0}'b', mode"),
    Case("CREATE STREAM x (v INT, b STRING) USING kafka OPTIONS (topic 't', kafka.bootstrap.servers 'h:1', mode 'changes', key.columns 'b'); CREATE VIEW c AS SELECT STREAM n, k FROM e EMIT CHANGES; CREATE PUMP p AS INSERT INTO x SELECT STREAM n, k FROM c", "R504", "(EMIT CHANGES) gives it: select it, and declare it", r"x \(v INT(.*) n, k FROM c", "x (change STRING, b STRING) USING kafka OPTIONS (topic 't', kafka.bootstrap.servers 'h:1', mode 'changes', key.columns 'b'); CREATE VIEW c AS SELECT STREAM n, k FROM e {0}; CREATE PUMP p AS INSERT INTO x SELECT STREAM change, k FROM c"),
    Case("CREATE STREAM x (v INT, b STRING) USING delta OPTIONS (path '/o', key 'b')" + INTO, "R567", "Declare (b NOT NULL)", "b STRING", "b STRING NOT NULL"),
    Case("CREATE STREAM x (v INT, b STRING) USING delta PARTITIONED BY (v, b) OPTIONS (path '/o', rowtime.column '')" + INTO, "R504", "Leave (one) out", "v, b[)] OPT", "v) OPT"),
    Case("CREATE STREAM x (v INT) USING delta; SELECT STREAM v FROM x", "R207", r"Add (OPTIONS \(path '/data/visits'\))", "delta", "delta {0}"),
    Case("CREATE STREAM x (v INT, b STRING) USING iceberg OPTIONS (table 'd.t')" + INTO, "R504", r"OPTIONS \((catalog 'name')", "table", "{0}, table"),
    Case("CREATE STREAM x (v SMALLINT, b STRING) USING iceberg OPTIONS (catalog 'c', table 'd.t')" + INTO, "R530", "Declare v (INT)", "SMALLINT", "{0}"),
    Case("CREATE STREAM x (v DOUBLE, b STRING) USING delta PARTITIONED BY (v) OPTIONS (path '/o')" + INTO, "R570", "of type DATE, (STRING)", "BY [(]v", "BY (b"),
    Case("CREATE STREAM x (v INT, b STRING) USING jdbc OPTIONS (url 'jdbc:postgresql://h/d')" + INTO, "R504", r"(dbtable 'name'), (key ')", r"d'\)", "d', {0}, {1}v')"),
    Case("CREATE STREAM x (v INT, b STRING) USING jdbc OPTIONS (url 'jdbc:postgresql://h/d', dbtable 'd', mode 'upsert')" + INTO, "R504", r"OPTIONS \(mode 'upsert', (key )'", r"dbtable", "{0}'v', dbtable"),
    Case("CREATE STREAM x (v INT, b STRING) USING jdbc OPTIONS (url 'jdbc:odd://h/d', dbtable 'd')" + INTO, "R504", r"OPTIONS \((driver )'…'", r"dbtable", "{0}'org.odd.Driver', dbtable"),
    Case("CREATE STREAM x (rowtime_ INT) USING parquet OPTIONS (path '/x'); CREATE STREAM x2 (v INT) USING parquet OPTIONS (path '/x', ends 'maybe'); SELECT STREAM v FROM x2", "R213", "Write (ends 'true')", "ends 'maybe'", "{0}"),
    Case("CREATE STREAM x (v INT) USING odd OPTIONS (path '/x'); SELECT STREAM v FROM x", "R210", "There are: .*(parquet)", "odd", "{0}"),
    Case("CREATE STREAM x (v INT) USING parquet OPTIONS (path '${in}'); SELECT STREAM v FROM x", "R131", "Give it with --set in=…", "", ""),
]
MORE = [
    Case("SELECT STREAM e.k FROM e OVER (RANGE INTERVAL '1' HOUR PRECEDING) JOIN f ON e.k = f.k", "R197", r"Use (EXTEND\()s, interval", "e OVER .*? JOIN", f"{{0}}e, {MINUTE}) AS e JOIN"),
    Case("SELECT STREAM e.k FROM e JOIN f ON e.k = f.k AND ROWTIME > DATE '2024-01-01'", "R197", r"start of one side is (e\.ROWTIME)", "ROWTIME >", "{0} >"),
    Case("SELECT STREAM e.k FROM e JOIN f ON e.k = f.k AND ROWTIME > DATE '2024-01-01'", "R197", "alter them with (SHIFT), (EXTEND) or (TO_POINT)", "FROM.*", f"FROM {{0}}({{1}}(e, {MINUTE}), {MINUTE}) AS e JOIN {{2}}(f) AS f ON e.k = f.k"),
    Case("SELECT STREAM k, n AS start FROM e EMIT CHANGES", "R119", "Rename the column", "AS start", "AS other"),
    Case(f"SELECT STREAM k FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ROWTIME), {MINUTE}))", "R193", r"(TUMBLE)\(size\), (HOP)\(hop, size\) or (SNAPSHOT\(\))", "k FROM .*", f"COUNT(*) AS c FROM e GROUP BY {{0}}({MINUTE})"),
    Case(f"SELECT STREAM k FROM TABLE(TUMBLE(TABLE e, DESCRIPTOR(ROWTIME), {MINUTE}))", "R193", r"(HOP)\(hop, size\) or (SNAPSHOT\(\))", "k FROM .*", f"COUNT(*) AS c FROM e GROUP BY {{0}}({MINUTE}, {MINUTE})"),
    Case("SELECT STREAM k FROM STREAM(DELAY(TABLE e, INTERVAL '10' SECOND)) AS x", "R193", "read a view that EMITs", "", "CREATE VIEW l AS SELECT STREAM k FROM e EMIT POINTS; SELECT STREAM k FROM STREAM(DELAY(TABLE l, INTERVAL '10' SECOND)) AS x"),
    Case("SELECT STREAM e.k FROM e JOIN f ON e.k = f.k JOIN points AS x ON x.k = e.k AND LIFETIME(e) CONTAINS LIFETIME(x)", "R198", "view of what is joined before", "", "CREATE VIEW l AS SELECT STREAM e.k FROM e JOIN f ON e.k = f.k; SELECT STREAM l.k FROM l JOIN points AS x ON x.k = l.k AND LIFETIME(l) CONTAINS LIFETIME(x)"),
    Case("SELECT STREAM e.k FROM e JOIN f ON e.k = f.k AND LIFETIME(e) CONTAINS f.u", "R198", "Compare it with (LIFETIME) of the other", "CONTAINS f.u", "CONTAINS {0}(f)"),
    Case("CREATE STREAM x (k STRING, u TIMESTAMP, until TIMESTAMP) EVENT SHAPE INTERVAL (u, until); CREATE PUMP p AS INSERT INTO x SELECT STREAM page, t, t + INTERVAL '1' HOUR AS e FROM s", "R193", "Write (?:q)(.ROWTIME AS u) in", "page, t", "page, s{0}"),
    Case("CREATE STREAM x (k STRING, u TIMESTAMP) EVENT SHAPE POINT (u); CREATE PUMP p AS INSERT INTO x SELECT STREAM page, t FROM s", "R193", "first: (SELECT STREAM t AS ROWTIME, t AS u), … (ORDER BY .*)[.]", "SELECT.*", "SELECT STREAM page, u FROM ({0}, page FROM s {1}) AS q"),
    Case("CREATE STREAM x (u TIMESTAMP, k STRING) EVENT SHAPE POINT (u); CREATE VIEW l AS SELECT STREAM k FROM e EMIT INTERVALS (a, b); CREATE PUMP p AS INSERT INTO x SELECT STREAM b, k FROM l", "R193", r"Write (EMIT POINTS \(u\)) behind", "EMIT INTERVALS .*", "{0}; CREATE PUMP p AS INSERT INTO x SELECT STREAM u, k FROM l"),
    Case("CREATE STREAM x (u TIMESTAMP, w TIMESTAMP, k STRING) EVENT SHAPE INTERVAL (u, w); CREATE VIEW l AS SELECT STREAM k FROM e EMIT INTERVALS (a, b); CREATE PUMP p AS INSERT INTO x SELECT STREAM a, b, k FROM l", "R193", r"Write (EMIT INTERVALS \(u, w\) FULLY ORDERED) behind", "EMIT INTERVALS .*", "{0}; CREATE PUMP p AS INSERT INTO x SELECT STREAM u, w, k FROM l"),
    Case("CREATE STREAM x (u TIMESTAMP, w TIMESTAMP, k STRING) EVENT SHAPE EDGE (u, w); CREATE VIEW l AS SELECT STREAM k FROM e EMIT INTERVALS (a, b); CREATE PUMP p AS INSERT INTO x SELECT STREAM a, b, k FROM l", "R193", r"(EMIT EDGES \(edge, u, w\)); (u, w) and", "EMIT INTERVALS .*", "{0}; CREATE PUMP p AS INSERT INTO x SELECT STREAM {1}, k FROM l"),
    Case("CREATE STREAM x (k STRING, a TIMESTAMP) EVENT SHAPE POINT (a) BOUND FROM s; SELECT STREAM k FROM x", "R199", "whose writers send bounds", "BOUND FROM s", "BOUND FROM points"),
    Case(f"SELECT STREAM NTH_VALUE(n, 2) FROM LAST OVER (RANGE BETWEEN UNBOUNDED PRECEDING AND {MINUTE} PRECEDING) AS x FROM s", "R163", "one, (RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND) …", "RANGE BETWEEN UNBOUNDED PRECEDING AND", "{0}"),
    Case("SELECT STREAM LAG(n) OVER (ROWS BETWEEN 9 PRECEDING AND 2 PRECEDING) AS x FROM s", "R161", "frame with (CURRENT ROW), or", "2 PRECEDING", "{0}"),
    Case("SELECT STREAM LAG(n) OVER (ROWS BETWEEN 9 PRECEDING AND 2 PRECEDING) AS x FROM s", "R161", "or leave it out", "ROWS .*? PRECEDING AND 2 PRECEDING", ""),
    Case(f"SELECT STREAM page FROM TABLE(SESSION(TABLE s PARTITION BY UPPER(page), DESCRIPTOR(ROWTIME), {MINUTE}))", "R113", "example TABLE s (PARTITION BY) k", r"PARTITION BY UPPER\(page\)", "{0} page"),
    Case(f"SELECT STREAM n FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ROWTIME), WIDTH => {MINUTE}))", "R113", "They are (DATA), (TIMECOL), (SIZE)", "TABLE s.*WIDTH", "{0} => TABLE s, {1} => DESCRIPTOR(ROWTIME), {2}"),
    Case("CREATE STREAM x (v INT) USING kafka OPTIONS (kafka.bootstrap.servers 'h:1', subscribe 't', ends 'true'); SELECT STREAM v FROM x", "R213", "Kafka by a record", ", ends 'true'", ""),
    Case("CREATE STREAM x (v INT, b STRING) USING csv OPTIONS (path '/x', encoding 'UTF-16')" + INTO, "R541", "stream of its own", ", encoding 'UTF-16'", ""),
    Case("CREATE STREAM x (v STRING) USING csv OPTIONS (path '/x', rowtime.column ''); CREATE PUMP p AS INSERT INTO x SELECT STREAM page FROM s", "R530", "Declare it (NOT NULL),", "STRING", "STRING {0}"),
    Case("CREATE STREAM x (v STRING) USING csv OPTIONS (path '/x', rowtime.column ''); CREATE PUMP p AS INSERT INTO x SELECT STREAM page FROM s", "R530", "write ROWTIME too", ", rowtime.column ''", ""),
    Case("CREATE STREAM x (v STRING) USING csv OPTIONS (path '/x', rowtime.column ''); CREATE PUMP p AS INSERT INTO x SELECT STREAM page FROM s", "R530", "a text: (nullValue 'NULL')", "rowtime.column", "{0}, rowtime.column"),
    Case("CREATE STREAM x (v MAP<STRING, INT>) USING jdbc OPTIONS (url 'jdbc:postgresql://h/d', dbtable 'd'); CREATE PUMP p AS INSERT INTO x SELECT STREAM MAP(page, n) FROM s", "R544", r"(to_json\()v\), and declare the column (STRING)", "MAP<(.*)", "{1}) USING jdbc OPTIONS (url 'jdbc:postgresql://h/d', dbtable 'd', key 'v'); CREATE PUMP p AS INSERT INTO x SELECT STREAM {0}MAP(page, n)) FROM s"),
    Case(f"SELECT STREAM DISTINCT COUNT(*) AS c FROM s GROUP BY {HOUR}, page ORDER BY c", "R184", r"sort that: (ORDER BY FLOOR.*), …", "", f"SELECT STREAM h, c FROM (SELECT STREAM DISTINCT {HOUR} AS h, COUNT(*) AS c FROM s GROUP BY {HOUR}, page) AS d {{0}}, c"),
    Case("CREATE FUNCTION f AS 'rowtime.core.shared_paths:sync'; CREATE FUNCTION f AS 'rowtime.core.shared_paths:sync'", "R203", "Write (CREATE OR REPLACE FUNCTION)", "; CREATE FUNCTION", "; {0}"),
    Case("SELECT STREAM rand() AS x FROM s", "R111", "use a column instead", r"rand\(\)", "n"),
    Case("CREATE STREAM x (v INT, b STRING) USING kafka OPTIONS (topic 't', kafka.bootstrap.servers 'h:1', key.column 'b', key.columns 'v, b')" + INTO, "R504", "Take one of them", "key.column 'b', ", ""),
    Case("CREATE STREAM x (v INT, b STRING) USING kafka OPTIONS (topic 't', kafka.bootstrap.servers 'h:1'); CREATE STREAM x2 (v INT, b STRING) USING kafka OPTIONS (topic 't', kafka.bootstrap.servers 'h:1'); CREATE PUMP p2 AS INSERT INTO x2 SELECT STREAM n, page FROM r" + INTO, "R546", "both pumps write into (x2?):", "INSERT INTO x2(.*)INSERT INTO x ", "INSERT INTO {0} SELECT STREAM n, page FROM r; CREATE PUMP p AS INSERT INTO {0} "),
    Case("CREATE STREAM x (b STRING) USING parquet OPTIONS (path '/x', rowtime.column 'b'); CREATE PUMP p AS INSERT INTO x SELECT STREAM page FROM s", "R133", r"set OPTIONS \((rowtime.column 'other')\)", r"rowtime.column 'b'", "{0}"),
    Case("CREATE STREAM x (b STRING NOT NULL) USING parquet OPTIONS (path '/x', rowtime.column 'b'); CREATE PUMP p AS INSERT INTO x SELECT STREAM page FROM s", "R133", r"'other'\), or ('') for none", "'b'", "{0}"),
    Case("CREATE STREAM x (k STRING, a TIMESTAMP) EVENT SHAPE POINT (a); CREATE PUMP p AS INSERT INTO x SELECT STREAM page, s.ROWTIME AS a FROM s; SELECT STREAM k FROM x", "R190", "Read the query of the pump", "SELECT STREAM k FROM x", "SELECT STREAM page, s.ROWTIME AS a FROM s"),
    Case("CREATE STREAM x (t TIMESTAMP, n INT) EVENT TIME (t, MODE MANUAL); CREATE PUMP p AS INSERT INTO x SELECT STREAM t, n FROM s; SELECT STREAM n FROM x", "R190", "event time on a view of x", "", "CREATE STREAM x (t TIMESTAMP, n INT); CREATE PUMP p AS INSERT INTO x SELECT STREAM t, n FROM s; CREATE VIEW y EVENT TIME (t, MODE MANUAL) AS SELECT STREAM t, n FROM x; SELECT STREAM n FROM y"),
    Case("CREATE STREAM x (v INT) USING kafka OPTIONS (topic 't', subscribe 't', kafka.bootstrap.servers 'h:1'); CREATE PUMP p AS INSERT INTO x SELECT STREAM n FROM s; SELECT STREAM v FROM x", "R504", "through a view say", "", "CREATE STREAM x (v INT) USING kafka OPTIONS (topic 't', kafka.bootstrap.servers 'h:1'); CREATE VIEW y AS SELECT STREAM n FROM s; CREATE PUMP p AS INSERT INTO x SELECT STREAM n FROM y; SELECT STREAM n FROM y"),
    Case("SELECT STREAM n FROM s FROM NOW; SELECT STREAM page FROM s", "R157", "(FROM NOW) in both places", "page FROM s", "page FROM s {0}"),
    Case("SELECT STREAM n FROM s FROM NOW; SELECT STREAM page FROM s", "R157", "or in none", " FROM NOW", ""),
    Case("CREATE VIEW y AS SELECT STREAM n FROM s; SELECT STREAM n FROM y FROM NOW", "R157", "says so of its streams", "", "CREATE VIEW y AS SELECT STREAM n FROM s FROM NOW; SELECT STREAM n FROM y"),
    Case("CREATE STREAM x (v BIGINT) USING rate; SELECT STREAM v FROM x FROM NOW", "R157", "Leave it out", " FROM NOW", ""),
    Case("SELECT STREAM COUNT(*) AS c FROM s GROUP BY (a + b", "R101", r"each \( has its \)", "SELECT.*", "SELECT STREAM COUNT(*) AS c FROM s GROUP BY FLOOR(s.ROWTIME TO HOUR)"),
    Case("SELECT STREAM n FROM s WHRE n > 3", "R101", "Did you mean (.*) instead of (.*)[?]", "WHRE", "{0}"),
    Case("CREATE STREAM x (v INT) USING parquet OPTIONS (path '/x'); INSERT INTO x VALUES (3); SELECT STREAM v FROM x", "R137", "where the stream comes from", "INSERT INTO x VALUES .3.; ", ""),
    Case("SELECT STREAM n, make_ym_interval(1, n) AS y FROM s", "R189", "as a number", r"make_ym_interval\(1, n\)", "12 + n"),
    Case("SELECT STREAM SUM(n) OVER (ORDER BY id RANGE INTERVAL '1' DAY PRECEDING) AS x FROM s", "R164", "Write (ORDER BY .*)[.]", "ORDER BY id", "{0}"),
    Case("CREATE STREAM x (v BINARY) USING csv OPTIONS (path '/x'); CREATE PUMP p AS INSERT INTO x SELECT STREAM CAST(page AS BINARY) AS v FROM s", "R530", r"or (base64)\(…\) for BINARY; and declare the column (STRING)", "BINARY(.*)", "{1}) USING csv OPTIONS (path '/x'); CREATE PUMP p AS INSERT INTO x SELECT STREAM {0}(CAST(page AS BINARY)) AS v FROM s"),
    Case("CREATE VIEW d AS SELECT STREAM n, t FROM s; CREATE VIEW m EVENT TIME (t, MODE MANUAL) AS SELECT STREAM n, t FROM s; ALTER VIEW d SET ROWTIME BOUND TIMESTAMP '2024-01-01'; SELECT STREAM n FROM m", "R171", "These have one: (m)[.]", "ALTER VIEW d", "ALTER VIEW {0}"),
    Case("CREATE VIEW y AS SELECT STREAM n FROM s UNION ALL SELECT STREAM n FROM s; SELECT STREAM n FROM y.rejected", "R125", "These do: .*?(s)[.]", "y.rejected", "{0}.rejected"),
    Case("SELECT STREAM n FROM STREAM(early_late_split(n)) AS x", "R141", r"Write (STREAM\(early_late_split\(CURSOR\()query\)", r"STREAM\(.*\)\)", f"{{0}}SELECT STREAM n, t FROM s), 't', {MINUTE}))"),
    Case("SELECT STREAM n FROM STREAM(early_late_split(n)) AS x", "R141", r"or (TABLE\(early_late_split\(TABLE s, )…", r"STREAM\(.*\)\)", f"{{0}}'t', {MINUTE}))"),
    Case(f"CREATE STREAM p (v INT); CREATE PUMP p AS INSERT INTO o (x) SELECT STREAM t AS ROWTIME, n FROM s {TSORT}; SELECT STREAM v FROM p", "R209", "Rename the pump", "PUMP p", "PUMP pp"),
    Case(f"SELECT STREAM {' + '.join(['n'] * 900)} AS x FROM s", "R101", "a part of it as a view", "", f"CREATE VIEW part AS SELECT STREAM {' + '.join(['n'] * 90)} AS n FROM s; SELECT STREAM {' + '.join(['n'] * 10)} AS x FROM part"),
]
CASES = [*JOINS, *GROUPS, *OVERS, *EVENTS, *PANES, *STATEMENTS, *FILES, *MORE]
