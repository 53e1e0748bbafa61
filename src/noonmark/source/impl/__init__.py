"""The sources: one module, or folder, for each kind of upstream."""
