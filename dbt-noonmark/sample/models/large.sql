{{ config(materialized='materializedview', indexes=[{'columns': ['total', 'customer']}]) }}
select customer, total from {{ ref('totals') }} where total > 10
