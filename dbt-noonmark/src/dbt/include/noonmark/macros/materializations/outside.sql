{#- Sources and sinks: they reach outside of the database, so no transaction includes them. -#}

{% materialization source, adapter='noonmark' %}
  {% set relation = this.incorporate(type='table') %}
  {{ run_hooks(pre_hooks) }}
  {% do adapter.take_turn() %}
  {% set object = noonmark_outside('source', relation) %}
  {% if object is none %}
    {{ noonmark_told(adapter.run_alone('create source ' ~ relation ~ ' ' ~ sql), relation) }}
  {% elif object.same %}
    {{ noonmark_told('KEPT', relation) }}
  {% else %}
    {% do noonmark_replace_source(object, relation) %}
  {% endif %}
  {% do noonmark_create_missing_indexes(relation) %}
  {% do apply_grants(relation, config.get('grants'), should_revoke=true) %}
  {% do persist_docs(relation, model) %}
  {% do adapter.end_turn() %}
  {{ run_hooks(post_hooks) }}
  {% do adapter.end_turn() %}
  {% do return({'relations': [relation]}) %}
{% endmaterialization %}


{% materialization sink, adapter='noonmark' %}
  {{ run_hooks(pre_hooks) }}
  {% do adapter.take_turn() %}
  {% set object = noonmark_outside('sink', this) %}
  {% if object is not none and object.same %}
    {{ noonmark_told('KEPT', this) }}
  {% else %}
    {% if object is not none %}
      {% do adapter.run_alone('create sink if not exists ' ~ this ~ ' ' ~ sql) %}
      {% do adapter.run_alone('drop sink ' ~ this) %}
    {% endif %}
    {{ noonmark_told(adapter.run_alone('create sink ' ~ this ~ ' ' ~ sql), this) }}
  {% endif %}
  {% do adapter.end_turn() %}
  {{ run_hooks(post_hooks) }}
  {% do adapter.end_turn() %}
  {% do return({'relations': []}) %}
{% endmaterialization %}


{#- The object of that name, and whether it can stay. -#}
{% macro noonmark_outside(words, relation) %}
  {% set object = noonmark_object(relation) %}
  {% if object is none %}{% do return(none) %}{% endif %}
  {% if object.type != words %}
    {% do exceptions.raise_compiler_error(
      relation ~ ' is a ' ~ object.words ~ ', and the model is a ' ~ words
      ~ ': drop the ' ~ object.words ~ ' first.'
    ) %}
  {% endif %}
  {% set same = not should_full_refresh()
      and adapter.same_body(noonmark_create_text(words, relation), sql) %}
  {% do return(dict(object, same=same)) %}
{% endmacro %}


{#- Drop a source and make it again, and then what stood on it. A text that cannot be read is found
    before anything is dropped: IF NOT EXISTS reads it, and makes nothing. -#}
{% macro noonmark_replace_source(object, relation) %}
  {% do adapter.run_alone('create source if not exists ' ~ relation ~ ' ' ~ sql) %}
  {% set above = noonmark_drop_selected_sinks(noonmark_above(object)) %}
  {% set kept = noonmark_kept(object, above) %}
  {% do adapter.run_alone('drop source ' ~ relation ~ ' cascade') %}
  {{ noonmark_told(adapter.run_alone('create source ' ~ relation ~ ' ' ~ sql), relation) }}
  {% do noonmark_make_again(kept) %}
{% endmacro %}
