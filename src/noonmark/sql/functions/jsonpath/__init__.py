"""SQL/JSON paths: `syntax` reads one, `evaluate` is its meaning, SQL calls `functions`."""
