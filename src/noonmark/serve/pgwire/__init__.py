"""PostgreSQL's protocol, version 3, in four layers: messages, codec, protocol, server."""
