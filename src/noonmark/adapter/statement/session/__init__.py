"""Statements about the session: settings, prepared statements and transactions."""
