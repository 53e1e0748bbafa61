{#- Views and materialized views: kept where the definition is the same, else replaced at once with
    everything that stands on them. -#}

{% materialization view, adapter='noonmark' %}
  {% do return(noonmark_keep_view('view')) %}
{% endmaterialization %}


{% materialization materialized_view, adapter='noonmark' %}
  {% do return(noonmark_keep_view('materialized view')) %}
{% endmaterialization %}


{% materialization materializedview, adapter='noonmark' %}
  {% do return(noonmark_keep_view('materialized view')) %}
{% endmaterialization %}


{% macro noonmark_keep_view(words) %}
  {% set relation = this.incorporate(type=words | replace(' ', '_')) %}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {% do adapter.take_turn() %}
  {% set object = noonmark_object(relation) %}
  {% set same = object is not none and not should_full_refresh()
      and noonmark_same_view(words, object, relation, sql) %}
  {% if same %}{% do noonmark_set_retention(words, object, relation) %}{% endif %}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}
  {% if same %}
    {{ noonmark_told('KEPT', relation) }}
  {% else %}
    {% do noonmark_put_view(words, object, relation, sql) %}
  {% endif %}
  {% do noonmark_create_missing_indexes(relation) %}
  {% do apply_grants(relation, config.get('grants'), should_revoke=same) %}
  {% do persist_docs(relation, model) %}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {% do adapter.end_turn() %}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {% do return({'relations': [relation]}) %}
{% endmacro %}


{#- What dbt shows for a node that ran no statement of its own. -#}
{% macro noonmark_told(said, relation) %}
  {% call noop_statement('main', said, said, -1) %}{{ sql }}{% endcall %}
{% endmacro %}


{% macro noonmark_maintenance() %}
  {% set said = (config.get('maintenance') or 'auto') | lower %}
  {% if said not in ('auto', 'strict') %}
    {% do exceptions.raise_compiler_error(
      '`maintenance` of ' ~ this ~ ' is "' ~ said ~ '": there are auto and strict.'
    ) %}
  {% endif %}
  {% do return(said) %}
{% endmacro %}


{% macro noonmark_same_view(words, object, relation, query) %}
  {% if object.words != words %}{% do return(false) %}{% endif %}
  {% set kept = noonmark_query_of(object) %}
  {% if not adapter.same_query(kept, query) %}{% do return(false) %}{% endif %}
  {% if words == 'view' %}{% do return(true) %}{% endif %}
  {% set options = adapter.kept_options(noonmark_create_text(words, relation), kept) %}
  {% do return(options.maintenance == noonmark_maintenance()) %}
{% endmacro %}


{#- How much history is kept is changed in place. -#}
{% macro noonmark_set_retention(words, object, relation) %}
  {% if words == 'view' %}{% do return('') %}{% endif %}
  {% set kept = adapter.kept_options(
    noonmark_create_text(words, relation), noonmark_query_of(object)
  ).retain_ms %}
  {% set interval = config.get('retain_history') %}
  {% set wanted = noonmark_milliseconds(interval) %}
  {% if wanted is none and kept is not none %}
    {% do adapter.run_alone('alter materialized view ' ~ relation ~ ' reset (retain history)') %}
  {% elif wanted != kept %}
    {% do adapter.run_alone(
      'alter materialized view ' ~ relation ~ ' set (retain history for '
      ~ noonmark_literal(interval | string) ~ ')'
    ) %}
  {% endif %}
{% endmacro %}


{% macro noonmark_view_sql(words, relation, query) %}
  {%- set options = [] -%}
  {%- if words != 'view' -%}
    {%- if config.get('retain_history') -%}
      {%- do options.append(
        'retain history for ' ~ noonmark_literal(config.get('retain_history') | string)
      ) -%}
    {%- endif -%}
    {%- if noonmark_maintenance() == 'strict' -%}
      {%- do options.append('maintenance = strict') -%}
    {%- endif -%}
  {%- endif -%}
  {{ config.get('sql_header') or '' }}
  {%- if (config.get('contract') or {}).enforced -%}
    {{ get_assert_columns_equivalent(query) }}
  {%- endif %}
  create {{ words }} {{ relation }}
  {{ 'with (' ~ options | join(', ') ~ ')' if options }} as
  {{ query }}
{% endmacro %}


{#- Make it, in place of what has its name; the transaction is committed by the caller. -#}
{% macro noonmark_put_view(words, object, relation, query) %}
  {% set kept = [] %}
  {% if object is not none %}
    {% if object.type not in ('table', 'view', 'materialized-view') %}
      {% do exceptions.raise_compiler_error(
        relation ~ ' is a ' ~ object.words ~ ', and the model is a ' ~ words
        ~ ': drop the ' ~ object.words ~ ' first.'
      ) %}
    {% endif %}
    {% set above = noonmark_drop_selected_sinks(noonmark_above(object)) %}
    {% set kept = noonmark_kept(object, above) %}
    {% call statement('drop') %}drop {{ object.words }} {{ relation }} cascade{% endcall %}
  {% endif %}
  {% call statement('main') %}{{ noonmark_view_sql(words, relation, query) }}{% endcall %}
  {% do noonmark_make_again(kept) %}
{% endmacro %}
