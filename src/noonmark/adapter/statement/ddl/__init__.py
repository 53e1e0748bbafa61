"""Statements that change the catalog: tables, views, sources, sinks, connections, roles."""
