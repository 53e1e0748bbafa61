{{ config(materialized='materialized_view', on_configuration_change='apply', indexes=[{'columns': ['customer']}]) }}
select customer, sum(amount) as total from {{ ref('orders') }} group by customer
