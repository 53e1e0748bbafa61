"""The version of the adapter; dbt looks for it here."""

version = "0.1.0"
