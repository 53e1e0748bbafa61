"""Scalar expressions whose value PostgreSQL decides: one per line of text, by subject."""

from __future__ import annotations

from support.sql.expressions_further import CHANGED_DOCUMENTS, FURTHER

NUMBERS = """
1 + 2
7 / 2
-7 / 2
-7 % 2
7 % -2
1 / 0
1 % 0
2147483647 + 1
2147483647::bigint + 1
9223372036854775807 + 1
32767::smallint + 1::smallint
(-2147483648)::int / (-1)
- (-2147483648)::int
abs(-2147483648::int)
1.5 + 2
1.50 * 2.0
1.10 - 0.1
10.0 / 3
1 / 3.0
2 / 3.0
200 / 3.0
1000000 / 7.0
0.0001 / 3
1e10 / 3
7.5 % 2
-7.5 % 2
1.0 / 0
round(2.5)
round(-2.5)
round(2.345, 2)
round(1234.5, -2)
round(2.5::float8)
round(3.5::float8)
trunc(2.999, 2)
trunc(-2.999)
floor(-1.5)
ceil(1.2)
ceiling(-1.2::float8)
sign(-3.2)
sign(5)
abs(-3.25)
mod(10, 3)
mod(10.5, 3)
sqrt(2)
sqrt(2.0)
sqrt(16.00)
sqrt(0.5)
sqrt(-1)
power(2, 10)
2 ^ 3
2 ^ -1
exp(1)
ln(10)
ln(0)
log(100)
cbrt(27)
1e308::float8 * 10
1e-308::float8 * 1e-300
1::float8 / 0
1::real + 1
1::real + 1::real
0.1::real
0.1::float8 + 0.2::float8
1::real / 3::real
'NaN'::float8 = 'NaN'::float8
'NaN'::float8 > 1e300
'Infinity'::float8 - 'Infinity'::float8
5 & 3
5 | 3
5 # 3
~5
1 << 4
-16 >> 2
1 << 33
gcd(12, 18)
lcm(4, 6)
greatest(1, 2, 3)
greatest(1, 2.5, null)
least('b', 'a')
greatest(null, null)
12345678901
0.05
.5
1e3
1.5e-3
pi()
degrees(pi())
atan2(1, 2)
asin(2)
"""

CASTS = """
'12'::int
' 12 '::int
'abc'::int
'99999999999'::int
2.5::int
3.5::int
-2.5::int
2.5::float8::int
3.5::float8::int
1e10::int
1e20::float8::bigint
1::boolean
0::boolean
true::int
true::text
false::varchar
'yes'::boolean
'maybe'::boolean
1.005::numeric(10,2)
123.456::numeric(4,1)
1234.5::numeric(4,1)
0.1::float8::numeric
1234567.891::real::numeric
3::numeric
12::text
1.50::text
1.5::float8::text
1e20::float8::text
100000::real::text
'abc'::varchar(2)
'abc'::char(5)
'abc'::char(5) = 'abc'
'abc  '::char(5)::text
'a'::char(3) || 'b'
length('ab'::char(5))
'2020-02-30'::date
'2020-02-29'::date
'2020-02-29 12:34:56.789'::timestamp
'2020-02-29 12:34:56.789'::timestamp::date
'2020-02-29 12:34:56.789'::timestamp::time
'2020-02-29'::date::timestamp
'12:34:56'::time::interval
'36:00:00'::interval::time
'1 day'::interval::text
'2020-01-01 00:00:00+02'::timestamptz
'2020-01-01 00:00:00+02'::timestamptz::timestamp
'{1,2,3}'::int[]
array[1,2]::text[]
array['1','2']::int[]
array[1,null,3]
'{"a": 1}'::jsonb
'{"a": 1'::jsonb
'5'::jsonb::int
'"x"'::jsonb::int
'true'::jsonb::boolean
'12.7'::jsonb::int
'b4b5d0d2-5a1c-4b51-9f0b-6f0d7c2b1a11'::uuid
'\\x6162'::bytea
null::int
null::int + 1
cast('7' as bigint)
date '1998-12-01'
int '5'
"""

TEXTS = """
'a' || 'b'
'a' || null
'a' || 1
1 || 'a'
'x' || true
length('héllo')
char_length('abc')
octet_length('héllo')
upper('abc')
lower('ABC')
initcap('hello wORLD foo_bar')
substring('hello' from 2 for 3)
substring('hello' from 0 for 3)
substring('hello' from -1 for 3)
substring('hello', 2)
substring('hello' from 2 for -1)
substr('hello', 2, 2)
substring('foobar' from 'o(.)b')
substring('foobar' from 'z')
left('hello', 2)
left('hello', -2)
right('hello', 2)
right('hello', -2)
lpad('5', 3, '0')
lpad('hello', 3)
rpad('x', 4, 'ab')
trim('  x  ')
trim(both 'x' from 'xxhixx')
trim(leading 'x' from 'xxhixx')
ltrim('zzzytest', 'xyz')
rtrim('testxxzx', 'xyz')
btrim('xyxtrimyyx', 'xyz')
replace('abcabc', 'b', 'X')
replace('abc', '', 'X')
translate('12345', '143', 'ax')
position('lo' in 'hello')
position('' in 'hello')
strpos('hello', 'z')
repeat('ab', 3)
repeat('ab', -1)
reverse('abc')
split_part('a,b,c', ',', 2)
split_part('a,b,c', ',', -1)
split_part('a,b,c', ',', 9)
split_part('a,b,c', ',', 0)
starts_with('hello', 'he')
ascii('a')
chr(65)
md5('abc')
to_hex(255)
to_hex(-1)
concat('a', null, 1, true)
concat_ws(',', 'a', null, 'b')
concat_ws(null, 'a')
overlay('Txxxxas' placing 'hom' from 2 for 4)
'hello' like 'h%o'
'hello' like 'h_llo'
'hello' like 'H%'
'hello' ilike 'H%'
'hello' not like 'x%'
'a%b' like 'a\\%b'
'axb' like 'a!%b' escape '!'
'a%b' like 'a!%b' escape '!'
'ab' like 'a\\'
'hello' ~ 'l+'
'hello' ~ '^l'
'hello' ~* 'HEL'
'hello' !~ 'z'
'hello' similar to '(h|j)e%'
'a1b2' ~ '[[:digit:]]'
'a-b' ~ '[[:alpha:]]-'
'a.b' ~ 'a\\.b'
'foo bar' ~ '\\mbar\\M'
regexp_replace('foobarbaz', 'b..', 'X')
regexp_replace('foobarbaz', 'b..', 'X', 'g')
regexp_replace('foobarbaz', 'b(..)', 'X\\1Y', 'g')
regexp_match('foobarbequebaz', '(bar)(beque)')
regexp_match('abc', 'z')
regexp_like('abc', 'B')
regexp_count('abab', 'a')
'a' < 'B'
'a' < 'b'
'abc' = 'abc '
'a' in ('b', 'a')
'a' not in ('b', null)
encode('abc'::bytea, 'hex')
encode('abc'::bytea, 'base64')
decode('616263', 'hex')
string_to_array('a,b,,c', ',')
array_to_string(array['a',null,'c'], ',', '*')
array_to_string(array['a',null,'c'], ',')
"""

TIMES = """
date '2020-01-31' + 1
date '2020-01-31' - 31
date '2020-03-01' - date '2020-02-01'
date '2020-01-31' + interval '1 month'
date '2020-01-31' + interval '1' month
date '1998-12-01' - interval '90' day
date '1994-01-01' + interval '1' year
interval '1 year 2 months 3 days 04:05:06.789'
interval '1 day' + interval '25 hours'
interval '1 month' * 1.5
interval '1 day' * 0.5
interval '1 year' / 7
interval '10 days' / 3
-interval '1 day 02:00'
interval '1 month' = interval '30 days'
interval '1 day' < interval '25 hours'
timestamp '2020-01-31 10:00' + interval '1 month 1 hour'
timestamp '2020-03-01' - timestamp '2020-02-01 12:00'
timestamp '2020-02-01' - timestamp '2020-03-01 12:00'
timestamptz '2020-01-01 00:00+00' - interval '1 second'
time '10:00' + interval '15 hours'
time '10:00' - time '08:30'
date '2020-01-01' + time '10:00'
extract(year from date '2020-05-17')
extract(month from timestamp '2020-05-17 10:20:30.5')
extract(day from timestamp '2020-05-17 10:20:30.5')
extract(hour from timestamp '2020-05-17 10:20:30.5')
extract(minute from timestamp '2020-05-17 10:20:30.5')
extract(second from timestamp '2020-05-17 10:20:30.5')
extract(milliseconds from timestamp '2020-05-17 10:20:30.5')
extract(microseconds from timestamp '2020-05-17 10:20:30.5')
extract(quarter from date '2020-05-17')
extract(week from date '2021-01-03')
extract(isoyear from date '2021-01-03')
extract(dow from date '2021-01-03')
extract(isodow from date '2021-01-03')
extract(doy from date '2020-12-31')
extract(decade from date '2020-12-31')
extract(century from date '2000-12-31')
extract(millennium from date '2001-01-01')
extract(epoch from timestamp '2020-05-17 10:20:30.5')
extract(epoch from date '2020-05-17')
extract(epoch from interval '1 year 2 months 3 days 4 hours')
extract(day from interval '40 days 5 hours')
extract(hour from interval '-30 hours')
extract(year from interval '-14 months')
extract(month from interval '-14 months')
extract(hour from time '10:20:30')
extract(year from date '0044-03-15 BC')
extract(month from 'infinity'::timestamp)
date_part('year', date '2020-05-17')
date_part('second', timestamp '2020-05-17 10:20:30.5')
date_part('nothing', date '2020-05-17')
date_trunc('month', timestamp '2020-05-17 10:20:30.5')
date_trunc('week', timestamp '2021-01-03 10:00')
date_trunc('quarter', timestamp '2020-05-17 10:20:30.5')
date_trunc('hour', timestamp '1960-05-17 10:20:30.5')
date_trunc('century', timestamp '2020-05-17 10:20:30.5')
date_trunc('decade', timestamp '2020-05-17 10:20:30.5')
date_trunc('day', timestamptz '2020-05-17 10:20:30.5+00')
date_trunc('month', date '2020-05-17')
date_trunc('hour', interval '3 days 02:47:33')
date_bin('15 minutes', timestamp '2020-02-11 15:44:17', timestamp '2001-01-01')
date_bin('1 day', timestamp '1999-02-11 15:44:17', timestamp '2001-01-01')
age(timestamp '2001-04-10', timestamp '1957-06-13')
age(timestamp '1957-06-13', timestamp '2001-04-10')
age(timestamp '2020-03-01', timestamp '2020-02-29')
age(timestamp '2020-01-31 12:00', timestamp '2019-12-31 13:00')
justify_hours(interval '50 hours')
justify_days(interval '65 days')
make_date(2020, 2, 29)
make_date(2021, 2, 29)
make_timestamp(2020, 2, 3, 4, 5, 6.5)
to_timestamp(1284352323.5)
timestamp '2020-07-01 12:00' at time zone 'Europe/Berlin'
timestamptz '2020-07-01 12:00+00' at time zone 'America/New_York'
timestamp '2020-07-01 12:00' at time zone 'UTC'
to_char(timestamp '2020-05-07 14:05:09.123456', 'YYYY-MM-DD HH24:MI:SS.MS US')
to_char(timestamp '2020-05-07 00:05:09', 'DD Mon YY, HH12:MI AM pm')
to_char(date '2021-01-03', 'Day|Dy|DDD|D|ID|IW|IYYY|Q|WW|Month|"year" YYYY')
to_char('infinity'::timestamp, 'YYYY')
isfinite(date '2020-01-01')
isfinite('infinity'::timestamp)
'infinity'::timestamp + interval '1 day'
date '2020-01-01' < timestamp '2020-01-01 00:00:01'
date '2020-01-01' = '2020-01-01'
date '2020-01-01' between '2019-01-01' and '2021-01-01'
"""

LOGIC = """
null and false
null and true
null or true
null or false
not null::boolean
true and not false
1 = null
null is null
1 is not null
1 is distinct from null
null is distinct from null
1 is not distinct from 1
(1 = null) is unknown
(1 = 1) is true
(null::boolean) is not true
(null::boolean) is false
1 in (1, null)
2 in (1, null)
2 not in (1, null)
null in (1)
1 between 0 and 2
1 not between 0 and 2
3 between symmetric 5 and 1
case when 1 = 1 then 'a' else 'b' end
case 3 when 1 then 'a' when 3 then 'c' end
case when false then 1 end
case when true then 1 else 1/0 end
case when false then 1/0 else 2.5 end
coalesce(null, 2, 1/0)
coalesce(null, null)
coalesce(null, 'x')
coalesce(1, 2.5)
nullif(1, 1)
nullif(1, 2)
nullif('a', 'b')
false and 1/0 = 1
true or 1/0 = 1
1 < 2 and 2 < 3 or false
not 1 = 2
1 = any(array[1,2])
3 = any(array[1,null])
3 <> all(array[1,2])
3 > all(array[1,null])
1 = any('{1,2}')
(1, 2) = (1, 2)
(1, 2) < (1, 3)
(1, null) = (2, 1)
(1, 2) in ((1, 2), (3, 4))
row(1, 'a') = row(1, 'a')
1 = 1.0
1::smallint = 1::bigint
1.0::float8 = 1
'1' = 1
'x' = 'x'::varchar
"""

DOCUMENTS = """
'{"a": {"b": [1, 2]}}'::jsonb -> 'a'
'{"a": {"b": [1, 2]}}'::jsonb -> 'a' -> 'b' -> 1
'{"a": {"b": [1, 2]}}'::jsonb -> 'z'
'{"a": "x"}'::jsonb ->> 'a'
'{"a": null}'::jsonb ->> 'a'
'{"a": 1.50}'::jsonb ->> 'a'
'[1, "two", null]'::jsonb ->> 1
'[1, "two", null]'::jsonb -> -1
'{"a": {"b": [1, 2]}}'::jsonb #> '{a,b,0}'
'{"a": {"b": [1, 2]}}'::jsonb #>> '{a,b}'
'{"a": 1, "b": 2}'::jsonb @> '{"a": 1}'
'{"a": 1}'::jsonb <@ '{"a": 1, "b": 2}'
'[1, 2, 3]'::jsonb @> '[3, 1]'
'[1, 2]'::jsonb @> '1'
'{"a": [1]}'::jsonb @> '{"a": 1}'
'{"a": 1}'::jsonb ? 'a'
'["a", "b"]'::jsonb ? 'b'
'{"a": 1}'::jsonb ?| array['x', 'a']
'{"a": 1}'::jsonb ?& array['x', 'a']
'{"a": 1}'::jsonb || '{"b": 2}'
'[1]'::jsonb || '2'
'{"a": 1, "b": 2}'::jsonb - 'a'
'[1, 2, 3]'::jsonb - 1
'{"a": 1.0}'::jsonb = '{"a": 1}'::jsonb
'{"b":1, "a" : [1, 2.50]}'::jsonb
jsonb_typeof('[1]')
jsonb_typeof('null')
jsonb_typeof('1.5')
jsonb_array_length('[1, 2]')
jsonb_array_length('{}')
to_jsonb(1.5)
to_jsonb('x'::text)
to_jsonb(true)
to_jsonb(array[1, null])
to_jsonb(timestamp '2020-01-01 10:00')
jsonb_build_object('a', 1, 'b', null)
jsonb_build_array(1, 'x', true)
jsonb_strip_nulls('{"a": null, "b": {"c": null}}')
(array[1,2,3])[2]
(array[1,2,3])[9]
(array[1,2,3])[2:3]
array_length(array[1,2], 1)
array_length('{}'::int[], 1)
cardinality(array[1,2])
array[1,2] || 3
0 || array[1,2]
array[1,2] || array[3]
array_append(array[1], 2)
array_position(array['a','b'], 'b')
array_remove(array[1,2,1], 1)
array[1,2] @> array[2]
array[1,2] && array[2,3]
array[1,2] = array[1,2]
array[1,2] < array[1,3]
array[1,null] = array[1,null]
array_replace(array[1,2,1,null], 1, 9)
array_replace(array[1,null], null, 3)
array_positions(array['a','b','a'], 'a')
array_positions(array[1,null], null)
array_ndims(array[1])
array_ndims('{}'::int[])
"""

EXPRESSIONS: dict[str, list[str]] = {
    name: [line for line in text.strip().splitlines() if line]
    for name, text in {
        "numbers": NUMBERS,
        "casts": CASTS,
        "texts": TEXTS,
        "times": TIMES,
        "logic": LOGIC,
        "documents": DOCUMENTS,
        "changed documents": CHANGED_DOCUMENTS,
        "further": FURTHER,
    }.items()
}
