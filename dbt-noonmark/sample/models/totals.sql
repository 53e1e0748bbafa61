{{ config(
    materialized='materialized_view',
    indexes=[{'columns': ['customer']}],
    retain_history='1h',
    maintenance='strict'
) }}
select customer, sum(amount) as total from {{ ref('paid') }} group by customer
