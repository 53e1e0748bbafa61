"""Connections, secrets, and the sources that are made on them."""
