{{ config(materialized='table', indexes=[{'columns': ['customer']}]) }}
select customer, count(*) as orders, sum(amount) as total from {{ ref('paid') }} group by customer
