"""Queries over the collections of `support.view.views`, some for every rule of maintenance."""

QUERIES = {
    "linear": "SELECT k, v + 1 AS v1, s || 'x' AS sx FROM l WHERE v > 0 OR s IS NULL",
    "fails": "SELECT k, 6 / v AS ratio FROM l",
    "fails_where": "SELECT k FROM l WHERE 6 / v > 1",
    "pairs": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k WHERE v < 2",
    "pairs_fail": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k AND 6 / v > w",
    "pairs_key_fails": "SELECT l.k, v, w FROM l JOIN r ON 6 / v = r.w AND l.k = r.k",
    "pairs_computed": "SELECT l.k, v, w FROM l JOIN r ON l.v + 1 = r.w",
    "pairs_less": "SELECT l.k, v, w FROM l JOIN r ON l.v < r.w",
    "pairs_null": "SELECT l.v, r.w FROM l JOIN r ON l.k IS NOT DISTINCT FROM r.k",
    "three": "SELECT a.k, b.v, r.w FROM l a JOIN l b ON a.k = b.k JOIN r ON b.v = r.w",
    "four": "SELECT a.s, b.w, c.v, d.w AS w2 FROM l a JOIN r b ON a.k = b.k "
    "JOIN l c ON b.w = c.v JOIN r d ON d.k = c.k AND d.w = a.v",
    "crossed": "SELECT l.v, r.w FROM l, r WHERE l.v = 1",
    "totals": "SELECT l.k, count(*) AS n, sum(v * w) AS total, avg(w) AS mean "
    "FROM l JOIN r ON l.k = r.k GROUP BY l.k",
    "everything": "SELECT count(*) AS n, sum(v) AS total, count(v) AS some FROM l",
    "filtered": "SELECT k, count(*) FILTER (WHERE v > 0) AS n, sum(v) AS t FROM l GROUP BY k",
    "of_totals": "SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM l GROUP BY k) x "
    "GROUP BY n",
    "above_mean": "SELECT k, v FROM l WHERE v > (SELECT avg(w) FROM r)",
    "above_own": "SELECT k, v FROM l WHERE v > (SELECT avg(w) FROM r WHERE r.k = l.k)",
    "is_least": "SELECT l.k, v, s FROM l JOIN (SELECT k, min(v) AS low FROM l GROUP BY k) m "
    "ON l.k = m.k AND l.v = m.low",
    "is_greatest": "WITH t AS (SELECT k, sum(v) AS total FROM l GROUP BY k) "
    "SELECT k, total FROM t WHERE total = (SELECT max(total) FROM t)",
    "missing": "SELECT l.k, v, w FROM l LEFT JOIN r ON l.k = r.k AND v <= w",
    "missing_right": "SELECT l.k, v, w FROM l RIGHT JOIN r ON l.k = r.k",
    "missing_both": "SELECT l.k, v, w FROM l FULL JOIN r ON l.k = r.k",
    "missing_then": "SELECT a.k, a.w, count(b.v) AS n FROM r a LEFT JOIN l b ON a.k = b.k "
    "GROUP BY a.k, a.w",
    "extremes": "SELECT k, min(v) AS low, max(s) AS high, count(DISTINCT v) AS n FROM l GROUP BY k",
    "extremes_all": "SELECT min(v) AS low, max(s) AS high FROM l",
    "listed": "SELECT k, string_agg(s, ',' ORDER BY s) AS all_s FROM l GROUP BY k",
    "keys": "SELECT DISTINCT k FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.w = l.v)",
    "without": "SELECT k, v FROM l "
    "WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.w <> l.v)",
    "with_and_without": "SELECT a.k, a.v FROM l a WHERE EXISTS (SELECT 1 FROM r WHERE r.k = a.k) "
    "AND NOT EXISTS (SELECT 1 FROM l b WHERE b.k = a.k AND b.v > a.v)",
    "in_group": "SELECT k, v FROM l WHERE k IN (SELECT k FROM r GROUP BY k HAVING sum(w) > 1)",
    "not_in": "SELECT k, v FROM l WHERE v NOT IN (SELECT w FROM r)",
    "best": "SELECT k, v, s FROM l ORDER BY v DESC LIMIT 3",
    "best_pairs": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k ORDER BY v DESC, w LIMIT 2 OFFSET 1",
    "best_each": "SELECT DISTINCT ON (k) k, v, s FROM l ORDER BY k, v DESC NULLS LAST, s",
    "ranked": "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v, s) AS n FROM l",
    "less": "SELECT k, v FROM l EXCEPT ALL SELECT k, w FROM r",
    "less_once": "SELECT k, v FROM l EXCEPT SELECT k, w FROM r",
    "shared": "SELECT k, v FROM l INTERSECT SELECT k, w FROM r",
    "both": "SELECT k, v FROM l UNION ALL SELECT k, w FROM r",
    "either": "SELECT k FROM l UNION SELECT w FROM r",
    "series": "SELECT k, g FROM l, generate_series(1, v) AS g",
    "constants": "SELECT l.k, x.n FROM l JOIN (VALUES (1, 'one'), (2, 'two')) x(i, n) ON l.k = x.i",
    "constants_counted": "SELECT k, (SELECT count(*) FROM (VALUES (1), (1)) x(i) WHERE x.i = l.v) "
    "AS n FROM l",
    "constants_added": "SELECT k, count(*) AS n, sum(v) AS total FROM (SELECT k, v FROM l "
    "UNION ALL VALUES (1, 7), (9, 5)) x GROUP BY k",
    "constants_by_text": "SELECT s, count(*) AS n FROM (SELECT s FROM l UNION ALL VALUES ('a')) x "
    "GROUP BY s",
    "by_text": "SELECT s, count(*) AS n FROM l GROUP BY s",
    "constants_added_all": "SELECT count(*) AS n, sum(v) AS total FROM (SELECT v FROM l "
    "UNION ALL VALUES (7), (5)) x",
    "doubled": "SELECT l.k FROM l CROSS JOIN (VALUES (1), (2)) x(n)",
    "cases": "SELECT CASE WHEN v = 0 THEN 0 ELSE 6 / v END AS safe, coalesce(s, 'none') AS s "
    "FROM l",
    "twice": "SELECT a.k, a.n, b.n AS m FROM (SELECT k, count(*) AS n FROM l GROUP BY k) a "
    "JOIN (SELECT k, count(*) AS n FROM r GROUP BY k) b ON a.k = b.k",
}

#: Recursions: over what changes, over what does not, and with limits.
RECURSIVE = {
    "reached": "WITH MUTUALLY RECURSIVE reach (a bigint, b bigint) AS (SELECT k, w FROM r UNION "
    "SELECT x.a, r.w FROM reach x JOIN r ON x.b = r.k) "
    "SELECT a, count(*) AS n FROM reach GROUP BY a",
    "rounds": "WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT 3) "
    "up (k bigint, n int) AS (SELECT k, v FROM l WHERE v > 0 UNION ALL SELECT k, n + 1 FROM up) "
    "SELECT k, max(n) AS m, count(*) AS c FROM up GROUP BY k",
    "too_long": "WITH MUTUALLY RECURSIVE (ERROR AT RECURSION LIMIT 3) "
    "up (n int) AS (SELECT v FROM l WHERE s = 'a' UNION SELECT n + 1 FROM up WHERE n < 3) "
    "SELECT n FROM up",
    "constant": "WITH MUTUALLY RECURSIVE n (x int) AS (VALUES (1) UNION SELECT x + 1 FROM n "
    "WHERE x < 3) SELECT l.k, n.x FROM n JOIN l ON l.v = n.x",
    "alone": "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n WHERE x < 4) "
    "SELECT x FROM n UNION ALL SELECT v FROM l",
    "reached_until": "WITH MUTUALLY RECURSIVE reach (a bigint, b bigint) AS (SELECT k, w FROM r "
    "WHERE mz_now() < k * 4 UNION SELECT x.a, r.w FROM reach x JOIN r ON x.b = r.k) "
    "SELECT a, b FROM reach WHERE mz_now() >= b * 3",
}

#: Temporal filters: of every form, below and above every rule; times are 1 to 13.
TEMPORAL = {
    "from": "SELECT k, v FROM l WHERE mz_now() >= k * 4",
    "after": "SELECT k, v FROM l WHERE k * 4 < mz_now()",
    "until": "SELECT k, v FROM l WHERE mz_now() < k * 3 + v",
    "up_to": "SELECT k, v FROM l WHERE mz_now() <= k * 3 + v",
    "exactly": "SELECT k, v FROM l WHERE mz_now() = k * 3",
    "sliding": "SELECT k, v, s FROM l WHERE mz_now() BETWEEN k * 2 AND k * 2 + 3 + v",
    "not_before": "SELECT k, v FROM l WHERE NOT mz_now() < k * 3",
    "halves": "SELECT k, w FROM r WHERE mz_now() >= k * 2.5 AND mz_now() < k * 3.5 + w",
    "floats": "SELECT k, w FROM r WHERE mz_now() > k * 2.5::float8 AND mz_now() <= w * 4.5::float8",
    "far": "SELECT k, v FROM l WHERE mz_now() < k * 1e30 AND mz_now() >= v * 1e30",
    "dated": "SELECT k FROM l WHERE mz_now() < to_timestamp(0.001 * (k * 4))",
    "never": "SELECT k FROM l WHERE mz_now() < NULL",
    "window_fails": "SELECT k, v FROM l WHERE mz_now() >= k AND mz_now() < 24 / v",
    "guarded": "SELECT k, v FROM l WHERE v > 0 AND mz_now() < 24 / v",
    "counted": "SELECT k, count(*) AS n, sum(v) AS t FROM l WHERE mz_now() < k * 4 GROUP BY k",
    "counted_all": "SELECT count(*) AS n, max(v) AS m FROM l WHERE mz_now() >= k * 3",
    "having": "SELECT k, sum(w) AS t FROM r GROUP BY k HAVING mz_now() <= sum(w) * 3 + 2",
    "pairs_until": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k WHERE mz_now() < l.k * 4 + r.w",
    "pairs_each": "SELECT l.k, v, w FROM l JOIN r ON l.k = r.k AND mz_now() < l.k * 4 "
    "AND mz_now() >= r.w * 2",
    "three_until": "SELECT a.k, b.v, r.w FROM l a JOIN l b ON a.k = b.k JOIN r ON b.v = r.w "
    "WHERE mz_now() < a.k * 3 AND mz_now() < b.k * 2 + a.v AND mz_now() >= r.k",
    "missing_until": "SELECT l.k, v, w FROM l LEFT JOIN r ON l.k = r.k AND mz_now() < r.w * 5",
    "exists_until": "SELECT k, v FROM l "
    "WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND mz_now() < r.w * 6)",
    "less_until": "SELECT k, v FROM l EXCEPT SELECT k, w FROM r WHERE mz_now() < k * 4",
    "once_until": "SELECT DISTINCT k FROM l WHERE mz_now() < v * 5",
    "best_until": "SELECT k, v FROM l WHERE mz_now() < k * 4 ORDER BY v DESC LIMIT 2",
    "ranked_until": "SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v, s) AS n FROM l "
    "WHERE mz_now() >= k * 3",
    "either_until": "SELECT k FROM l WHERE mz_now() < k * 3 UNION SELECT k FROM r "
    "WHERE mz_now() >= k * 3",
    "above_mean_until": "SELECT k, v FROM l "
    "WHERE v >= (SELECT avg(w) FROM r WHERE mz_now() < k * 4)",
    "constant_until": "SELECT l.k, x.n FROM l JOIN (VALUES (1, 4), (2, 9)) x(i, n) ON l.k = x.i "
    "WHERE mz_now() < x.n",
    "constants_come": "SELECT x.n FROM (VALUES (4), (9)) x(n) WHERE mz_now() >= x.n "
    "UNION ALL SELECT v FROM l",
}
