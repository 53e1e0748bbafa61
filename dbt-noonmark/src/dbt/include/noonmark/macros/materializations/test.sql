{#- Tests whose failing rows are a materialized view: they are there, and exact, between runs. -#}

{% materialization test, adapter='noonmark' %}
  {% if not (config.get('maintained') or config.get('store_failures_as') == 'materialized_view') %}
    {% do return(materialization_test_default()) %}
  {% endif %}
  {% set relation = api.Relation.create(
    database=database, schema=schema, identifier=model.alias, type='materialized_view'
  ) %}
  {% do adapter.take_turn() %}
  {% set object = noonmark_object(relation) %}
  {% if object is none %}{% do create_schema(relation) %}{% endif %}
  {% set words = 'materialized view' %}
  {% if object is none or not noonmark_same_view(words, object, relation, sql) %}
    {% do noonmark_put_view(words, object, relation, sql) %}
  {% endif %}
  {% do adapter.end_turn() %}
  {% call statement('main', fetch_result=True) %}
    {{ get_test_sql(
      'select * from ' ~ relation, config.get('fail_calc'), config.get('warn_if'),
      config.get('error_if'), config.get('limit')
    ) }}
  {% endcall %}
  {% do return({'relations': [relation]}) %}
{% endmaterialization %}
