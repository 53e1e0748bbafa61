{#- Indexes. The server names them; one is missing when none has the same columns in that order. -#}

{% macro noonmark__get_create_index_sql(relation, index_dict) -%}
  {%- set index = adapter.parse_index(index_dict) -%}
  {%- if index.unique -%}
    {%- do exceptions.raise_compiler_error(
      'Noonmark has no unique indexes: leave out `unique` in the indexes of ' ~ relation
      ~ ', and test for it (`data_tests: [unique]`).'
    ) -%}
  {%- endif -%}
  create index on {{ relation }} (
    {%- for column in index.columns -%}
      {{ adapter.quote(column) }}{{ ', ' if not loop.last }}
    {%- endfor -%}
  )
{%- endmacro %}


{% macro noonmark_missing_indexes(relation) %}
  {% set wanted = config.get('indexes', default=[]) or [] %}
  {% if not wanted %}{% do return([]) %}{% endif %}
  {% set there = [] %}
  {% for row in run_query('show indexes on ' ~ relation).rows %}
    {% do there.append(fromjson(row['key']) if row['key'] is string else row['key'] | list) %}
  {% endfor %}
  {% set missing = [] %}
  {% for index_dict in wanted %}
    {% set columns = adapter.parse_index(index_dict).columns %}
    {% set create = get_create_index_sql(relation, index_dict) %}
    {% if columns not in there %}
      {% do there.append(columns) %}
      {% do missing.append(create) %}
    {% endif %}
  {% endfor %}
  {% do return(missing) %}
{% endmacro %}


{% macro noonmark_create_missing_indexes(relation) %}
  {% for create in noonmark_missing_indexes(relation) %}
    {% call statement('index') %}{{ create }}{% endcall %}
  {% endfor %}
{% endmacro %}
