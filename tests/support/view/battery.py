"""Views that take every rewrite of a plan: each rule of `sql.rules` and each rewrite of `compute`.

They are read by tests that must notice when one of these is wrong, so each rule is met in several
queries, over rows on which it makes a difference (NULL keys, duplicates, rows without a partner).
"""

from __future__ import annotations

#: By the rewrite that each is about; all of them meet several.
BATTERY = {
    "fold_not": "SELECT k, v FROM l WHERE NOT (v < 1) AND (TRUE OR v = 2)",
    "fold_not_all": "SELECT k, v FROM l WHERE NOT (v <= 0) OR NOT (v <> 2) OR NOT (v > -9)",
    "fold_case": "SELECT k, CASE WHEN FALSE THEN 7 WHEN v IS NULL THEN 8 ELSE v END AS x, "
    "COALESCE(NULL, v, 5) AS y, 2 + 3 * 4 AS z FROM l",
    "fold_null": "SELECT k FROM l WHERE (v IS NULL) IS TRUE OR NOT (k IS NOT NULL)",
    "fold_known": "SELECT n FROM (SELECT count(*) AS n, k FROM l GROUP BY k) x WHERE n IS NOT NULL",
    "push_left": "SELECT l.k, v, w FROM l LEFT JOIN r ON l.k = r.k AND w > 0 WHERE v < 2",
    "push_right": "SELECT l.k, v, w FROM l RIGHT JOIN r ON l.k = r.k AND v > 0 WHERE w < 2",
    "push_on": "SELECT l.k, v, w FROM l LEFT JOIN r ON l.k = r.k AND v > 0",
    "push_null": "SELECT l.k, v, w FROM l LEFT JOIN r ON l.k = r.k WHERE w IS NULL",
    "push_inner": "SELECT l.k, v, w FROM l LEFT JOIN r ON l.k = r.k WHERE w > 0 AND v > -9",
    "push_group": "SELECT * FROM (SELECT k, sum(v) AS n FROM l GROUP BY k) x WHERE k > 1 AND n > 0",
    "push_union": "SELECT * FROM (SELECT k, v FROM l UNION ALL SELECT k, w FROM r) x WHERE v > 0",
    "push_top": "SELECT * FROM (SELECT DISTINCT ON (k) k, v, s FROM l ORDER BY k, v DESC, s) x "
    "WHERE v < 2 AND k > 1",
    "push_anti": "SELECT k, v FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND w > 0 "
    "AND l.v > 0) AND v < 2",
    "push_semi": "SELECT k, v FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND w > 0 "
    "AND l.v > 0) AND s = 'a'",
    "push_map": "SELECT * FROM (SELECT k, v, g FROM l, generate_series(1, v) AS g) x "
    "WHERE k > 1 AND g > 1",
    "merge": "SELECT a + 1 AS b, a AS c FROM (SELECT v + k AS a, s FROM (SELECT * FROM l "
    "WHERE v > -2) y WHERE s <> 'b') x",
    "merge_twice": "SELECT DISTINCT a FROM (SELECT DISTINCT v AS a, k FROM l) x WHERE a < 2",
    "keys": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k AND l.v <= r.w",
    "keys_null": "SELECT l.k, v, w FROM l JOIN r ON l.k IS NOT DISTINCT FROM r.k",
    "keys_two": "SELECT l.k, s, w FROM l JOIN r ON l.k = r.k AND l.v = r.w",
    "order": "SELECT a.k, b.w, c.v FROM l AS a, r AS b, l AS c "
    "WHERE a.k = c.k AND c.v = b.w AND a.s = 'a'",
    "imply": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k WHERE (v = 1 AND w = 2) OR "
    "(v = 2 AND w < 2)",
    "imply_one": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k WHERE (v = 1 AND w = 2) OR w < 0",
    "inline_nested": "WITH x AS (SELECT k, count(*) AS n FROM l GROUP BY k), y AS (SELECT k, n + 1 "
    "AS m FROM x WHERE n > 0) SELECT a.k, b.m, x.n FROM y AS a JOIN y AS b ON a.k = b.k "
    "JOIN x ON x.k = a.k",
    "nested": "SELECT k, v FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND EXISTS "
    "(SELECT 1 FROM l AS m WHERE m.v = r.w AND m.k = l.k))",
    "inline_once": "WITH x AS (SELECT k, v FROM l WHERE v > 0) SELECT k FROM x",
    "inline_twice": "WITH x AS (SELECT k, count(*) AS n FROM l GROUP BY k) "
    "SELECT a.k, b.n FROM x AS a JOIN x AS b ON a.k = b.n",
    "inline_shadow": "WITH x AS (SELECT k FROM l), y AS (WITH x AS (SELECT w AS k FROM r) "
    "SELECT k FROM x) SELECT x.k FROM x JOIN y ON x.k = y.k",
    "prune": "SELECT x.s FROM (SELECT l.k, l.s, r.w, l.v + 1 AS y FROM l JOIN r ON l.k = r.k) x",
    "prune_distinct": "SELECT v FROM (SELECT DISTINCT k, v FROM l) x",
    "prune_group": "SELECT n FROM (SELECT k, s, count(*) AS n, max(v) AS m FROM l GROUP BY k, s) x",
    "prune_except": "SELECT k FROM (SELECT k, v FROM l EXCEPT SELECT k, w FROM r) x",
    "prune_window": "SELECT s, n FROM (SELECT k, s, v, row_number() OVER (PARTITION BY k ORDER BY "
    "v, s) AS n FROM l) x",
    "exists": "SELECT k, v FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k)",
    "not_in": "SELECT k, v FROM l WHERE v NOT IN (SELECT w FROM r WHERE r.k = l.k)",
    "alone": "SELECT k FROM l WHERE EXISTS (SELECT 1 FROM r WHERE w > 1)",
    "lateral_map": "SELECT l.k, g FROM l, LATERAL generate_series(1, l.v) AS g",
    "pulled": "SELECT l.k, x.w, x.d FROM l, LATERAL (SELECT r.w, r.w + 1 AS d FROM r "
    "WHERE r.k = l.k AND r.w < l.v) x",
    "counted": "SELECT k, v, (SELECT count(*) FROM r WHERE r.k = l.k) AS n FROM l",
    "summed": "SELECT k, (SELECT sum(w) + l.v FROM r WHERE r.k = l.k) AS n FROM l",
    "nulls": "SELECT k, (SELECT count(*) FROM r WHERE r.k IS NOT DISTINCT FROM l.k) AS n FROM l",
    "latest": "SELECT l.k, x.w FROM l, LATERAL (SELECT w FROM r WHERE r.k = l.k ORDER BY w DESC "
    "NULLS LAST LIMIT 1) x",
    "domain": "SELECT k, (SELECT count(*) FROM r WHERE r.w < l.v) AS n FROM l",
    "domain_left": "SELECT l.k, x.w FROM l LEFT JOIN LATERAL (SELECT w FROM r WHERE r.k = l.k "
    "ORDER BY w LIMIT 1) x ON x.w > 0",
    "domain_groups": "SELECT l.k, x.n FROM l, LATERAL (SELECT w, count(*) AS n FROM r "
    "WHERE r.k < l.k GROUP BY w) x",
    "domain_distinct": "SELECT l.v, x.w FROM l, "
    "LATERAL (SELECT DISTINCT w FROM r WHERE w <= l.v) x",
    "time_until": "SELECT k, v FROM l WHERE mz_now() <= v + 3",
    "time_both": "SELECT k, v FROM l WHERE mz_now() >= v + 1 AND mz_now() < v + 4 AND s <> 'b'",
    "time_equal": "SELECT k, v FROM l WHERE mz_now() = v + 4",
    "time_turned": "SELECT l.k, w FROM l JOIN r ON l.k = r.k AND v + 3 > mz_now()",
    "alone_recursive": "WITH RECURSIVE c(n) AS (VALUES (1) UNION SELECT n + 1 FROM c WHERE n < 3) "
    "SELECT l.k, n FROM l JOIN c ON l.v = c.n",
    "alone_all": "WITH RECURSIVE c(n) AS (VALUES (1), (1) UNION ALL SELECT n + 1 FROM c "
    "WHERE n < 2) SELECT l.k, n FROM l JOIN c ON l.v = c.n",
    "recursive": "WITH RECURSIVE c(n) AS (SELECT k FROM l UNION SELECT w FROM c "
    "JOIN r ON r.k = c.n) SELECT n FROM c",
    "apart": "SELECT k, count(*) AS n, min(v) AS low, sum(v) AS total, max(v) AS high FROM l "
    "GROUP BY k",
    "apart_all": "SELECT max(v) AS high, count(v) AS n, avg(v) AS mean FROM l",
    "three": "SELECT a.k, b.v, c.w FROM l AS a JOIN l AS b ON a.v = b.v JOIN r AS c ON b.k = c.k",
    "above": "SELECT k, v FROM l WHERE v > (SELECT avg(v) FROM l)",
    "below": "SELECT k, v FROM l WHERE v <= (SELECT max(w) FROM r)",
    "full": "SELECT l.k, v, w FROM l FULL JOIN r ON l.k = r.k",
    "moments": "SELECT k, avg(v) AS m, stddev(v) AS d, sum(v::float8) AS f, bool_and(v > 0) AS b "
    "FROM l GROUP BY k",
    "distinct_agg": "SELECT k, count(DISTINCT v) AS n, sum(v) FILTER (WHERE s = 'a') AS t FROM l "
    "GROUP BY k",
    "sets": "SELECT k, v FROM l INTERSECT ALL SELECT k, w FROM r",
    "top": "SELECT k, v, s FROM l ORDER BY v DESC NULLS LAST, k, s LIMIT 3 OFFSET 1",
    "fails": "SELECT k, 6 / v AS x FROM l WHERE v <> 0",
    "fails_now": "SELECT k, 6 / v AS x FROM l",
}
