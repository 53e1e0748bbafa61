{#- What is in the catalog. dbt's cache knows neither sinks nor texts, so the server is asked. -#}

{% macro noonmark_literal(text) -%}
  '{{ text | replace("'", "''") }}'
{%- endmacro %}


{#- The object that has a relation's name, or none: id, type, words (its type as SQL says it). -#}
{% macro noonmark_object(relation) %}
  {% set found = run_query(
    "select o.id, o.type, o.owner_id from mz_catalog.mz_objects o"
    ~ " join mz_catalog.mz_schemas s on s.id = o.schema_id"
    ~ " where s.name = " ~ noonmark_literal(relation.schema)
    ~ " and o.name = " ~ noonmark_literal(relation.identifier)
  ) %}
  {% for row in found.rows %}
    {% do return({
      'id': row['id'], 'type': row['type'], 'owner': row['owner_id'],
      'words': row['type'] | replace('-', ' ')
    }) %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{#- The text that would make an object as it is. -#}
{% macro noonmark_create_text(words, name) %}
  {% set shown = run_query('show create ' ~ words ~ ' ' ~ name) %}
  {% do return(shown.rows[0]['create_sql']) %}
{% endmacro %}


{#- The query of a view or a materialized view. -#}
{% macro noonmark_query_of(object) %}
  {% set place = 'mz_views' if object.type == 'view' else 'mz_materialized_views' %}
  {% set found = run_query(
    "select definition from mz_catalog." ~ place ~ " where id = " ~ noonmark_literal(object.id)
  ) %}
  {% do return(found.rows[0]['definition']) %}
{% endmacro %}


{#- An interval in milliseconds, as the server reads it; none for none. -#}
{% macro noonmark_milliseconds(interval) %}
  {% if not interval %}{% do return(none) %}{% endif %}
  {% set found = run_query(
    "select cast(extract(epoch from cast(" ~ noonmark_literal(interval | string)
    ~ " as interval)) * 1000 as bigint) as ms"
  ) %}
  {% do return(found.rows[0]['ms'] | int) %}
{% endmacro %}


{#- The node of this project that makes an object of this schema and name, or none. -#}
{% macro noonmark_node(schema, name) %}
  {% for node in graph.nodes.values()
      if node.alias == name and node.schema == schema
      and node.resource_type in ('model', 'seed', 'snapshot', 'test') %}
    {% do return(node) %}
  {% endfor %}
  {% do return(none) %}
{% endmacro %}


{#- Sources are tables to dbt and have a word of their own to the server. -#}
{% macro noonmark__alter_relation_comment(relation, comment) %}
  {% set object = noonmark_object(relation) %}
  {% set words = object.words if object else relation.type | replace('_', ' ') %}
  comment on {{ words }} {{ relation }} is {{ postgres_escape_comment(comment) }}
{% endmacro %}
