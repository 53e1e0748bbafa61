{{ config(store_failures_as='materialized_view', severity='warn') }}
select customer, total from {{ ref('totals') }} where total > 100
