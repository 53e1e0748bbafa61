{{ config(materialized='incremental', unique_key='id') }}
select id, customer, amount, placed_at from {{ ref('large') }}
{% if is_incremental() %} where placed_at >= (select max(placed_at) from {{ this }}) {% endif %}
