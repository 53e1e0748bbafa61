"""`noonmark demo`: the main job, live in a terminal, as far as the product goes."""
