"""Tools on a storage location: `noonmark shard ls | show | verify | dump`.

They only read, as an independent reader: safe beside a running writer, which cannot notice them.
"""
