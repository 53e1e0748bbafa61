{{ config(materialized='incremental', incremental_strategy='append', on_schema_change='append_new_columns') }}
select id, amount from {{ ref('paid') }}
{% if is_incremental() %} where id > (select coalesce(max(id), 0) from {{ this }}) {% endif %}
