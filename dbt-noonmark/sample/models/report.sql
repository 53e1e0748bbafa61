{{ config(materialized='view') }}
select count(*) as customers, sum(total) as total from {{ ref('large') }}
