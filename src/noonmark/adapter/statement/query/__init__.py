"""Statements that answer: SELECT, EXPLAIN, SHOW, SUBSCRIBE, AUDIT, cursors and REFRESH."""
