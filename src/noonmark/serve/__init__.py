"""The front ends: PostgreSQL's protocol and HTTP, over the adapter's sessions."""
