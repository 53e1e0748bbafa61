"""Rows: one schema and one value, the same in SQL, Arrow, Spark and PostgreSQL's wire formats."""
