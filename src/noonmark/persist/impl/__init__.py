"""Implementations of `Blob` and `Consensus`, one store per file."""
