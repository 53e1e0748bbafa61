"""Functions of dates, times, timestamps and intervals: arithmetic, fields, templates, zones."""
