{{ config(materialized='source') }}
FROM LOAD GENERATOR COUNTER (TICK INTERVAL '10ms', UP TO 20)
