"""More expressions whose value PostgreSQL decides: documents that are changed, and the rest."""

CHANGED_DOCUMENTS = """
'{"a": {"b": 1, "c": 2}, "d": [1, 2]}'::jsonb #- '{a,b}'
'{"a": {"b": 1, "c": 2}, "d": [1, 2]}'::jsonb #- '{d,-1}'
'{"a": {"b": 1}, "d": [1, 2]}'::jsonb #- '{d,7}'
'{"a": 1}'::jsonb #- '{a,x}'
'[1, 2]'::jsonb #- '{x}'
'1'::jsonb #- '{a}'
'{"a": 1}'::jsonb #- '{}'
jsonb_set('{"a": 1}', '{a}', '2')
jsonb_set('{"a": 1}', '{b}', '2')
jsonb_set('{"a": 1}', '{b}', '2', false)
jsonb_set('{"a": {"x": 1}}', '{a,y}', '[true]')
jsonb_set('{"a": 1}', '{a,b}', '2')
jsonb_set('{"a": 1}', '{b,c}', '2')
jsonb_set('[1, 2]', '{1}', '"x"')
jsonb_set('[1, 2]', '{-1}', 'null')
jsonb_set('[1, 2]', '{5}', '3')
jsonb_set('[1, 2]', '{-5}', '3')
jsonb_set('[1, 2]', '{x}', '3')
jsonb_set('1', '{x}', '3')
jsonb_set('{"a": 1}', array[null], '3')
jsonb_set('{"a": 1}', '{a}', null)
jsonb_insert('{"a": [0, 1, 2]}', '{a,1}', '"new"')
jsonb_insert('{"a": [0, 1, 2]}', '{a,1}', '"new"', true)
jsonb_insert('{"a": [0, 1, 2]}', '{a,-1}', '"new"')
jsonb_insert('{"a": [0, 1, 2]}', '{a,9}', '"new"')
jsonb_insert('{"a": 1}', '{b}', '2')
jsonb_insert('{"a": 1}', '{a}', '2')
jsonb_pretty('{"a": [1, {"b": null}], "cc": {}, "d": []}')
jsonb_pretty('1.50')
jsonb_extract_path('{"a": {"b": [10, 20]}}', 'a', 'b', '1')
jsonb_extract_path('{"a": 1}', 'x')
jsonb_extract_path_text('{"a": {"b": "t"}}', 'a', 'b')
jsonb_extract_path_text('{"a": {"b": null}}', 'a', 'b')
"""

FURTHER = r"""
|/ 16.0
||/ 27.0
|/ (-1.0)
sinh(1.0)
cosh(-1.0)
tanh(0.5)
asinh(0.5)
cosh(1000.0)
width_bucket(5.35, 0.024, 10.06, 5)
width_bucket(5.0::float8, 10.0, 0.0, 4)
width_bucket(-1.0::float8, 0.0, 10.0, 4)
width_bucket(10.0::float8, 0.0, 10.0, 4)
width_bucket(1.0::float8, 1.0, 1.0, 4)
width_bucket(1.0::float8, 0.0, 1.0, 0)
num_nulls(1, null, 'x')
num_nonnulls(1, null, 'x')
quote_ident('plain')
quote_ident('Two words')
quote_ident('a"b')
quote_ident('select')
quote_literal('it''s')
quote_literal('back\slash')
quote_nullable(null)
quote_nullable('x')
format('%s and %s', 1, 'two')
format('%I = %L', 'My col', 'it''s')
format('%2$s %1$s %s', 'a', 'b', 'c')
format('%%|%5s|%-5s|', 'ab', 'cd')
format('%s|%L', null, null)
format('%I', null)
format('%s')
format('%x', 1)
format(null, 1)
format('none')
regexp_split_to_array('a1b22c', '[0-9]+')
regexp_substr('abc123', '[0-9]+')
regexp_substr('abc', '[0-9]+')
regexp_instr('abc123', '[0-9]+')
regexp_instr('abc', '[0-9]+')
$$it's$$
$x$a$$b$x$
"""
