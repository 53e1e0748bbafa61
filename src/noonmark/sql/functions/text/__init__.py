"""Functions of texts and binary strings: characters, patterns, quoting, digests, Unicode."""
