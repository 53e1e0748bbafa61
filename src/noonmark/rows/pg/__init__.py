"""Values as PostgreSQL writes and reads them, as text and in binary; `rows.postgres` is the door.

text, binary, column             values and whole columns in both formats
nested, floats                   arrays and records; floats
times, datetimes, fields         dates and times, in all the forms that PostgreSQL reads
intervals, spans                 intervals
oid                              numbers of types
"""
