"""The adapter: catalog, sessions, transactions and timestamps between SQL and the layers below."""
