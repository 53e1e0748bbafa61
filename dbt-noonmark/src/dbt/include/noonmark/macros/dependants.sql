{#- What stands on an object, and how it is made again when the object is replaced.

    The server refuses to replace what others read, and drops them with it under CASCADE. So they
    are read first, dropped, and made again in the transaction that replaces the object: for
    everybody else there is one moment at which all of it changes. -#}

{#- Everything above an object, in an order in which it can be made. -#}
{% macro noonmark_above(object) %}
  {% set found = run_query(
    "with recursive above (id) as ("
    ~ " select object_id from mz_internal.mz_object_dependencies"
    ~ " where referenced_object_id = " ~ noonmark_literal(object.id)
    ~ " union select d.object_id from mz_internal.mz_object_dependencies d"
    ~ " join above on d.referenced_object_id = above.id)"
    ~ " select o.id, o.oid, o.type, s.name as schema, o.name, o.owner_id, i.on_id"
    ~ " from above join mz_catalog.mz_objects o on o.id = above.id"
    ~ " join mz_catalog.mz_schemas s on s.id = o.schema_id"
    ~ " left join mz_catalog.mz_indexes i on i.id = o.id"
    ~ " order by cast(substring(o.id from 2) as integer)"
  ) %}
  {% set above = [] %}
  {% for row in found.rows %}
    {% do above.append({
      'id': row['id'], 'oid': row['oid'], 'type': row['type'], 'schema': row['schema'],
      'name': row['name'], 'owner': row['owner_id'], 'on': row['on_id'],
      'words': row['type'] | replace('-', ' '),
      'full': adapter.quote(row['schema']) ~ '.' ~ adapter.quote(row['name'])
    }) %}
  {% endfor %}
  {% do return(above) %}
{% endmacro %}


{#- Those of them that are made again, each with the statements that do it. Indexes on the object
    itself are the model's own configuration; parts of a source come with it. -#}
{% macro noonmark_kept(object, above) %}
  {% if not above %}{% do return([]) %}{% endif %}
  {% set kept, meanings = [], noonmark_meanings() %}
  {% for each in above %}
    {% set reads = meanings.get(each.schema ~ '.' ~ each.name, []) %}
    {% if each.type == 'index' and each.on != object.id %}
      {% do kept.append(dict(each, reads=reads, statements=[noonmark_index_text(each)])) %}
    {% elif each.type in ('view', 'materialized-view') %}
      {% do kept.append(dict(each, reads=reads, statements=noonmark_view_texts(each))) %}
    {% endif %}
  {% endfor %}
  {% do return(kept) %}
{% endmacro %}


{% macro noonmark_sink_in_the_way(sink) -%}
  The sink {{ sink.full }} reads {{ this }}, or what stands on it. A sink cannot be made again
  without writing everything again, so it is not done in passing. Drop it, or run both with
  --full-refresh (`dbt run --full-refresh --select {{ model.name }}+`).
{%- endmacro %}


{#- Under --full-refresh a sink that this run makes again later is dropped before. -#}
{% macro noonmark_drop_selected_sinks(above) %}
  {% for each in above if each.type == 'sink' %}
    {% set node = noonmark_node(each.schema, each.name) %}
    {% if not (should_full_refresh() and node and node.unique_id in selected_resources) %}
      {% do exceptions.raise_compiler_error(noonmark_sink_in_the_way(each)) %}
    {% endif %}
    {% do adapter.run_alone('drop sink if exists ' ~ each.full) %}
  {% endfor %}
  {% do return(above | rejectattr('type', 'equalto', 'sink') | list) %}
{% endmacro %}


{#- What every object reads, by names: {'s.view': ['s.table', ...]}. -#}
{% macro noonmark_meanings() %}
  {% set found = run_query(
    "select os.name || '.' || o.name as reader, rs.name || '.' || r.name as read"
    ~ " from mz_internal.mz_object_dependencies d"
    ~ " join mz_catalog.mz_objects o on o.id = d.object_id"
    ~ " join mz_catalog.mz_schemas os on os.id = o.schema_id"
    ~ " join mz_catalog.mz_objects r on r.id = d.referenced_object_id"
    ~ " join mz_catalog.mz_schemas rs on rs.id = r.schema_id order by 1, 2"
  ) %}
  {% set meanings = {} %}
  {% for row in found.rows %}
    {% do meanings.setdefault(row['reader'], []).append(row['read']) %}
  {% endfor %}
  {% do return(meanings) %}
{% endmacro %}


{% macro noonmark_index_text(index) %}
  {% set found = run_query(
    "select indexdef from pg_catalog.pg_indexes where schemaname = "
    ~ noonmark_literal(index.schema) ~ " and indexname = " ~ noonmark_literal(index.name)
  ) %}
  {% do return(found.rows[0]['indexdef']) %}
{% endmacro %}


{#- A view with its comments, its grants and its owner. -#}
{% macro noonmark_view_texts(view) %}
  {% set texts = [noonmark_create_text(view.words, view.full)] %}
  {% set comments = run_query(
    "select d.description, a.attname from pg_catalog.pg_description d"
    ~ " left join pg_catalog.pg_attribute a"
    ~ " on a.attrelid = d.objoid and a.attnum = d.objsubid and d.objsubid > 0"
    ~ " where d.objoid = " ~ view.oid
  ) %}
  {% for row in comments.rows %}
    {% set on = 'column ' ~ view.full ~ '.' ~ adapter.quote(row['attname'])
        if row['attname'] is not none else view.words ~ ' ' ~ view.full %}
    {% do texts.append('comment on ' ~ on ~ ' is ' ~ noonmark_literal(row['description'])) %}
  {% endfor %}
  {% set grants = run_query(
    "select grantee, privilege_type from information_schema.role_table_grants"
    ~ " where table_schema = " ~ noonmark_literal(view.schema)
    ~ " and table_name = " ~ noonmark_literal(view.name)
  ) %}
  {% for row in grants.rows if row['grantee'] != view.owner %}
    {% set to = 'public' if row['grantee'] | lower == 'public' else adapter.quote(row['grantee']) %}
    {% do texts.append(
      'grant ' ~ row['privilege_type'] ~ ' on ' ~ view.full ~ ' to ' ~ to
    ) %}
  {% endfor %}
  {% if view.owner != target.user %}
    {% do texts.append(
      'alter ' ~ view.words ~ ' ' ~ view.full ~ ' owner to ' ~ adapter.quote(view.owner)
    ) %}
  {% endif %}
  {% do return(texts) %}
{% endmacro %}


{#- Make them again. What no longer fits the new definition is left out if this run, or the next
    `dbt test`, makes it anyway; otherwise nothing of the replacement happens. -#}
{% macro noonmark_make_again(kept) %}
  {% set left_out = [] %}
  {% for each in kept %}
    {% set error = adapter.tried(each.statements) %}
    {% if error %}
      {% set node = noonmark_node(each.schema, each.name) %}
      {% set later = each.on in left_out or (
        node and (node.resource_type == 'test' or node.unique_id in selected_resources)
      ) %}
      {% if not later %}
        {% do exceptions.raise_compiler_error(
          'The ' ~ each.words ~ ' ' ~ each.full ~ ' reads ' ~ this ~ ' and cannot be made again'
          ~ ' over its new definition, so nothing was changed. Change or drop it first.\n' ~ error
        ) %}
      {% endif %}
      {% do left_out.append(each.id) %}
      {% do log('left out for now: ' ~ each.full ~ ': ' ~ error, info=false) %}
    {% endif %}
  {% endfor %}
  {% do noonmark_mean_the_same(kept | rejectattr('id', 'in', left_out) | list) %}
{% endmacro %}


{#- A text may name other relations than it did: under another search_path, or after a renaming. -#}
{% macro noonmark_mean_the_same(kept) %}
  {% set meanings = noonmark_meanings() if kept else {} %}
  {% for each in kept if meanings.get(each.schema ~ '.' ~ each.name, []) != each.reads %}
    {% do exceptions.raise_compiler_error(
      'The ' ~ each.words ~ ' ' ~ each.full ~ ' reads ' ~ this ~ ' and would read other relations'
      ~ ' if it were made again from its text (so far ' ~ each.reads | join(', ')
      ~ '), so nothing was changed. Make it again with names that have schemas, or drop it.'
    ) %}
  {% endfor %}
{% endmacro %}
