{{ config(materialized='materialized_view') }}
select count(*) as ticks, max(counter) as newest from {{ ref('ticks') }}
