"""Formats: bytes of a record to typed columns, or to the reason why not. All pure."""
