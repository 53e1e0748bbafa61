"""Queries whose rows PostgreSQL decides, over small collections with NULLs and duplicates."""

# ruff: noqa: E501 - a query is a line

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from noonmark.rows.schema import Schema

SCHEMAS = {
    "t": Schema.of(a="integer", b="text", c="numeric(10,2)", d="date"),
    "u": Schema.of(a="integer", x="integer", y="text"),
    "v": Schema.of(k="bigint not null", z="double precision", l="integer[]", j="jsonb"),
    "empty": Schema.of(a="integer", e="text"),
}

_D = dt.date
ROWS = {
    "t": {
        (1, "one", Decimal("1.50"), _D(2020, 1, 1)): 1,
        (1, "uno", Decimal("2.25"), _D(2020, 2, 1)): 2,
        (2, "two", Decimal("10.00"), None): 1,
        (3, None, None, _D(2021, 1, 1)): 1,
        (None, "none", Decimal("-3.10"), _D(2019, 12, 31)): 1,
        (4, "four", Decimal("0.00"), _D(2020, 1, 1)): 3,
        (None, None, None, None): 2,
    },
    "u": {
        (1, 10, "p"): 1,
        (1, 20, "q"): 2,
        (2, 10, None): 1,
        (5, 50, "r"): 1,
        (None, 60, "s"): 1,
        (4, None, "p"): 1,
    },
    "v": {
        (1, 1.5, (1, 2, 2), '{"n": 1, "tags": ["x", "y"]}'): 1,
        (2, None, (), '{"n": 2}'): 2,
        (3, -2.25, (3, None), "[1, 2]"): 1,
        (4, 1e10, None, None): 1,
    },
    "empty": {},
}

TEXT = """
select * from t
select a, b from t where a > 1
select a + 1, upper(b) from t where c is not null
select * from t where a = null
select * from t where not (a > 1)
select t.a, u.x from t join u on t.a = u.a
select * from t join u using (a)
select * from t natural join u
select * from t left join u on t.a = u.a
select * from t left join u using (a)
select * from t right join u using (a)
select * from t full join u using (a)
select * from t full join u on t.a = u.a and u.x > 10
select * from t left join u on t.a = u.a and t.c > 2
select * from t left join u on t.a = u.a where u.x > 10
select * from t left join u on t.a = u.a where u.x is null
select * from t cross join u
select * from t, u where t.a = u.a and u.x > 10
select * from t t1, t t2 where t1.a < t2.a
select * from t join u on t.a = u.a or t.b = u.y
select * from t join u on t.a < u.x
select * from t join empty on t.a = empty.a
select * from t left join empty on t.a = empty.a
select * from (select a, c * 2 as c2 from t) s where c2 > 3
select s.p from (values (1, 'a'), (2, null)) s(p, q)
select t.* from t, (values (1), (2)) w(a) where w.a = t.a
select count(*), count(a), count(distinct a), sum(a), avg(a), min(a), max(a) from t
select count(*), sum(c), avg(c), min(b), max(d) from t
select count(*), sum(a), avg(a), min(a) from empty
select a, count(*), sum(c) from t group by a
select a, sum(c) from t group by a having count(*) > 1
select a % 2, count(*) from t group by a % 2
select a % 2 as p, count(*) from t group by p
select a, b, count(*) from t group by 1, 2
select a + 1 from t group by a + 1
select a + 1 from t group by a
select count(*) filter (where a > 1), sum(a) filter (where b like 'o%') from t
select sum(distinct c), count(distinct b), avg(distinct a) from t
select string_agg(b, ',' order by b) from t
select bit_and(a), bit_or(a), bit_xor(a) from t
select a, bit_xor(x), bit_or(x::bigint) from u group by a
select jsonb_object_agg(y, x order by x) from u where y is not null and x is not null
select a, jsonb_object_agg(x, y) from u where x is not null group by a
select any_value(a) is not null from t where a is not null
select string_agg(b, ',' order by c desc, b) from t
select string_agg(distinct b, ',' order by b) from t
select array_agg(a order by a) from t
select array_agg(a order by a desc nulls last) from t
select a, array_agg(b order by b) from t group by a
select bool_and(a > 0), bool_or(a > 3), every(a > 0) from t
select stddev(a), variance(a), stddev_pop(c), var_pop(c), var_samp(z) from t, v
select sum(z), avg(z), stddev(z) from v
select min(d), max(d), max(d) - min(d) from t
select sum(k), avg(k) from v
select a from t group by a having false
select 1 from t having count(*) > 3
select distinct a from t
select distinct a, b from t
select distinct on (a) a, b from t order by a, b desc
select distinct on (a) a, b, c from t order by a, c, b
select a from t union select a from u
select a from t union all select a from u
select a from t intersect select a from u
select a from t intersect all select a from u
select a from t except select a from u
select a from t except all select a from u
select a from t union select a from u union all select 1
select 1 union select 2.5 union select null
(select a from t order by a limit 2) union all (select x from u order by x desc limit 2)
select a from t order by a limit 3
select a from t order by a desc limit 3
select a, b from t order by b nulls first, a limit 4 offset 1
select a from t order by c limit 2
select a, b from t order by a nulls first, b desc nulls last, c
select b from t order by length(b), b
select a as b2 from t order by b2 desc nulls last, c
select a from t offset 100
select a, (select max(x) from u where u.a = t.a) from t
select a, (select count(*) from u where u.a = t.a) from t
select a, (select count(*) + 1 from u where u.a = t.a and u.x > 10) from t
select a, (select sum(x) from u) from t
select a, (select x from u where u.a = t.a and u.y = 'p') from t
select a, (select x from u where u.a = t.a) from t
select a, (select x from u where u.a = t.a) from t where a in (2, 3, 4)
select * from t where a in (select a from u)
select * from t where a not in (select a from u)
select * from t where a not in (select a from u where a is not null)
select * from t where exists (select 1 from u where u.a = t.a)
select * from t where not exists (select 1 from u where u.a = t.a)
select * from t where exists (select 1 from u where u.a = t.a and u.x > t.c)
select * from t where exists (select 1 from u where u.a < t.a)
select * from t where a > all (select a from u where a is not null and a < 3)
select * from t where a >= any (select x from u)
select * from t where a = some (select a from u)
select * from t where a <> all (select x from u)
select a in (select a from u) from t
select a not in (select a from u) from t
select a in (select a from empty), exists (select 1 from u where u.a = t.a) from t
select a > any (select a from u), a > all (select a from u where a < 2) from t
select * from t where a in (select a from u) or b = 'none'
select * from t where (a, b) in (select a, 'one' from u)
select * from t where c = (select max(c) from t t2 where t2.a = t.a)
select * from t where c > (select avg(c) from t)
select * from t where (select count(*) from u where u.a = t.a) = 2
select * from t where (select count(*) from u where u.a = t.a) = 0
select a, (select string_agg(y, ',' order by y) from u where u.a = t.a) from t
select a, (select u.x from u where u.a = t.a order by u.x limit 1) from t
select a, (select max(x) from u where u.a > t.a) from t
select a, (select count(*) from u where u.a > t.a) from t
select a, (select count(*) from (select distinct y from u where u.a = t.a) q) from t
select a, (select count(distinct u.y) from u join v on v.k = u.a where v.z > t.c) from t
select a, array(select x from u where u.a = t.a order by x) from t
select * from t, lateral (select x, y from u where u.a = t.a) l
select * from t, lateral (select x from u where u.a = t.a order by x desc limit 1) l
select * from t left join lateral (select x from u where u.a = t.a order by x limit 1) l on true
select * from t left join lateral (select count(*) n, max(x) m from u where u.a = t.a) l on l.n > 1
select * from t cross join lateral (select t.a + 1 as a1) l
select t.a, l.s from t, lateral (select sum(x) + t.a as s from u where u.a >= t.a) l
select a from t where exists (select 1 from u where u.a = t.a and exists (select 1 from v where v.k = u.a and v.k = t.a))
select a from t where a in (select a from u where x in (select x from u u2 where u2.a = t.a and u2.y <> u.y))
select a, (select max(x) from u where u.a = t.a group by u.y order by 1 limit 1) from t
select a, sum((select count(*) from u where u.a = t.a)) from t group by a
select a, (select sum(x) from u where u.a = t.a) from t group by a
select a, count(*) from t group by a having count(*) > (select count(*) from u where u.a = t.a)
select a, (select 1 from u union select t.a order by 1 limit 1) from t
select * from t where a = (select a from u where y = 'r')
select * from t where exists (select 1 from u where u.a is not distinct from t.a)
select a, (select count(*) from u where u.a is not distinct from t.a) from t
with w as (select a, count(*) n from t group by a) select * from w where n > 1
with w as (select a, count(*) n from t group by a) select w1.a, w2.n from w w1 join w w2 on w1.a = w2.a
with w(p, q) as (select a, b from t), w2 as (select p from w where q is not null) select * from w2
with t as (select 1 as one) select * from t
with w as (select * from u) select *, (select count(*) from w where w.a = t.a) from t
select a, row_number() over (order by a, b, c) from t
select a, b, rank() over (order by a), dense_rank() over (order by a) from t
select a, b, row_number() over (partition by a order by b, c) from t
select a, count(*) over (partition by a) from t
select a, sum(a) over (order by a) from t
select a, c, sum(c) over (order by a, c rows between 1 preceding and 1 following) from t where a is not null
select a, sum(a) over (order by a rows unbounded preceding) from t
select a, sum(a) over (order by a groups between 1 preceding and current row) from t
select a, count(*) over (order by a rows between unbounded preceding and current row exclude current row) from t
select a, count(*) over (order by a range between current row and unbounded following) from t
select a, count(*) over (order by a groups between 1 preceding and 1 following exclude ties) from t
select a, count(*) over (order by a range between 1 preceding and 1 following), sum(c) over (order by a range 2 preceding) from t
select a, count(*) over (order by a desc range between 1 preceding and unbounded following), count(*) over (order by a nulls first range between 1 following and 2 following) from t
select c, count(*) over (order by c range between 1 preceding and 1.75 following), max(c) over (order by c desc range between 2.25 preceding and current row exclude current row) from t
select d, count(*) over (order by d range between interval '1 month' preceding and '1 day' following), min(d) over (order by d desc range between '1 month' preceding and interval '10 days' following) from t
select z, count(*) over (order by z range between 0.5 preceding and 1e3 following) from v
select a, lag(a) over (order by a), lead(a, 2) over (order by a), lag(a, 1, -1) over (order by a) from t
select a, first_value(a) over (order by a), last_value(a) over (order by a), nth_value(a, 2) over (order by a) from t
select a, ntile(3) over (order by a), percent_rank() over (order by a), cume_dist() over (order by a) from t
select a, sum(count(*)) over (order by a) from t group by a
select a, sum(c) over w, avg(c) over w from t window w as (partition by a)
select a, count(*) filter (where b is not null) over (partition by a) from t
select * from (select a, b, row_number() over (partition by a order by b desc, c) as n from t) s where n = 1
select rank() over (order by sum(c) desc), a from t group by a
select a, b, count(*), grouping(a), grouping(a, b) from t group by grouping sets ((a), (b), ())
select a, b, sum(c) from t group by rollup (a, b)
select a, b, sum(c) from t group by cube (a, b)
select a, count(*) from t group by rollup (a) having grouping(a) = 0
select g from generate_series(1, 4) g
select t.a, g from t, generate_series(1, t.a) g
select t.a, g from t left join lateral generate_series(1, t.a) g on true
select g::date from generate_series(timestamp '2020-01-01', timestamp '2020-01-03', interval '1 day') g
select * from generate_series(5, 1, -2) with ordinality
select k, e from v, unnest(l) e
select k, e, n from v cross join lateral unnest(l) with ordinality as w(e, n)
select k, e from v left join lateral unnest(v.l) e on e > 1
select k, j ->> 'n' from v
select k, (j ->> 'n')::int + 1 from v
select k, e from v, jsonb_array_elements_text(j -> 'tags') e
select k, p.key, p.value from v, jsonb_each(j) p where jsonb_typeof(j) = 'object'
select k from v where j @> '{"n": 1}'
select k, l[1], cardinality(l), array_length(l, 1) from v
select k from v where 2 = any(l)
select case when a > 2 then 'big' when a is null then 'none' else 'small' end, count(*) from t group by 1
select coalesce(b, 'x') || '-' || coalesce(a::text, '?') from t
select a / 0 from t
select a / 0 from empty
select case when a = 0 then 0 else 10 / a end from t
select 10 / (a - 1) from t where a <> 1
select sum(a) / count(a) from t
select extract(year from d), count(*) from t group by extract(year from d)
select d + interval '1 month', date_trunc('month', d) from t
select d, d - date '2020-01-01' from t where d between date '2020-01-01' and date '2020-12-31'
select a, d from t where d in (date '2020-01-01', '2021-01-01')
select b from t where b like '%o%' and b not like 't%'
select b from t where b ilike 'O%' or b ~ '^t'
select sum(c * (1 - 0.05)) from t
select round(avg(c), 2), round(sum(c) / 7, 3) from t
select max(a) + 1, -min(c), abs(min(c)) from t
select least(a, 2), greatest(c, 1) from t
select nullif(a, 1) from t
select a is distinct from 1, a is not distinct from null from t
select t.a from t join u on t.a = u.a join v on v.k = u.a
select t.a, u.x, v.z from t left join u on t.a = u.a left join v on v.k = u.a and v.z > 0
select t1.a from t t1 join (t t2 join u on t2.a = u.a) on t1.a = t2.a
select * from (t join u using (a)) w
select count(*) from t, u, v where t.a = u.a and u.a = v.k
select exists (select 1 from empty), (select a from empty), 1 in (select a from empty)
values (1, 'a'), (2, 'b')
select k, unnest(l) from v
select k, unnest(l) * 2 as w from v where k < 4 order by k, w
select generate_series(1, 3)
select a, generate_series(1, a) from t
select * from (select a, a from t) s
select * from (select a as p, b as p from t) s join u on true
with recursive r(n) as (select 1 union all select n + 1 from r where n < 5) select n from r
with recursive r(n) as (select 1 union select (n * 2) % 7 from r) select n from r
with recursive r as (select a, x from u where a = 1 union all select r.a + 1, u.x from r join u on u.a = r.a + 1) select * from r
with recursive r as (select 1 as n), q as (select n + 1 as m from r) select * from q
select b from t where b like any (array['o%', 't%'])
select b from t where b ilike all (array['o%', '%E'])
values (1), (2.5) order by 1 desc limit 1
select (select a from t order by a limit 1), (values (1))
select 1 as x where false
select 'a' as q, 1
select a from t where true and a = 1 and true
select a from t where 1 = 2
select * from t where a = 1 limit 0
"""

QUERIES = [line for line in TEXT.strip().splitlines() if line]

# These have an answer only because a filter is asked before what it guards, as PostgreSQL does too.
GUARDED = {
    "select k, p.key, p.value from v, jsonb_each(j) p where jsonb_typeof(j) = 'object'",
}
assert set(QUERIES) >= GUARDED
