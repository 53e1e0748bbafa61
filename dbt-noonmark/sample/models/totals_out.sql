{#- Give it a connection to Kafka: dbt run --vars 'connection: public.k' -#}
{{ config(materialized='sink', enabled=var('connection', '') != '') }}
FROM {{ ref('totals') }} INTO KAFKA CONNECTION {{ var('connection') }} (TOPIC 'totals')
KEY (customer) NOT ENFORCED FORMAT JSON ENVELOPE UPSERT
