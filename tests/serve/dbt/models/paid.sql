{{ config(materialized='view') }}
select id, customer, amount, placed_at from {{ ref('orders') }} where amount > 0
