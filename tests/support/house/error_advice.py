"""What to do about each error: by group, and by id where more helps (`house.generated_docs`)."""

from __future__ import annotations

#: By the id of a class right below the root.
GROUPS = {
    "usage": "Fix the call, and send it again. Nothing changed.",
    "evaluation": (
        "The query has no answer on the rows of that time. It is data: find the row, change "
        "it or guard the expression (`CASE`, `NULLIF`, `WHERE`). A view that has such an "
        "error answers again when the row is gone, and AS OF before it."
    ),
    "definite_error": (
        "The relation has no rows from a time on, because upstream took away what it needs. "
        "AS OF before that time still answers."
    ),
    "interrupted": "The statement was ended from outside. It may be sent again.",
    "serialization_failure": (
        "Somebody else changed what the transaction had read. Nothing changed: run the whole "
        "transaction again."
    ),
    "writer": "Another process writes to the location. One writes at a time; any number may read.",
    "storage": "The disk, the object store or the log's database failed.",
    "source": (
        "What a source reads from failed. Its status says so "
        "(`mz_internal.mz_source_statuses`), and the others go on."
    ),
    "integrity": "Stored data is not what was written. Nothing is guessed: restore from a backup.",
    "internal": (
        "A defect of ours. The number in the message finds the traceback in the server's log; "
        "please report it."
    ),
    "not_answered": "A read-only server asked the one that writes, and got no answer.",
}

#: By id. A class without advice of its own has that of the nearest class above it that has some.
ADVICE = {
    "below_upper": "Write at a later time.",
    "not_below_frontier": "Seal further, or write the update earlier.",
    "frontier_regression": "Read where the frontier is, and go on from there.",
    "before_since": (
        "Ask as of the time that the hint names, or later; `RETAIN HISTORY FOR` keeps more "
        "from now on."
    ),
    "not_yet_complete": "Wait, or ask as of an earlier time.",
    "unknown_collection": "Look at `noonmark.shards`, or `noonmark shard ls`.",
    "name_taken": "Choose another name, or say `IF NOT EXISTS` or `OR REPLACE`.",
    "schema_mismatch": "Compare the columns with `\\d name`.",
    "invalid_value": "Correct the value.",
    "capability_invalid": "Take a new hold, and read from there.",
    "read_only": "Send it to the server that writes.",
    "stopped": "Connect again when the server is back.",
    "config": "Correct the option; the hint says how.",
    "unsupported": "Write it another way; the hint says which, where there is one.",
    "protocol_violation": "It is the driver's: look for a newer one.",
    "not_authorized": "Check user, password and TLS ([security](../operate/security.md)).",
    "unknown_statement": "Prepare it in this session.",
    "statement_taken": "`DEALLOCATE` it, or choose another name.",
    "unknown_portal": "Declare it in this transaction, or `WITH HOLD`.",
    "portal_taken": "`CLOSE` it, or choose another name.",
    "copy_failed": "Send it again.",
    "bad_copy_data": "The message has the line; correct it and send all of it again.",
    "undefined_object": "Check the name and `search_path`.",
    "duplicate_object": "Choose another name, or say `IF NOT EXISTS`.",
    "wrong_object_type": "Use the statement for that kind of object.",
    "dependent_objects": "Drop those that the detail names first, or say `CASCADE`.",
    "insufficient_privilege": "Ask for the right ([GRANT](../sql/role.md)).",
    "in_failed_transaction": "`ROLLBACK`, then begin again.",
    "no_active_transaction": "`BEGIN` first.",
    "in_transaction": "Run it outside of a transaction.",
    "raised_exception": "A `DO` block raised it: its text says why.",
    "unknown_savepoint": "Check its name.",
    "not_null_violation": "Give a value.",
    "too_complex": "Nest less, or make views of the parts.",
    "string_too_long": "Shorten the text, or use `text`.",
    "unique_violation": "Choose another key, or say `ON CONFLICT`.",
    "reserved_name": "Choose another name.",
    "sql": "The position says where; correct the text.",
    "ambiguous_column": "Write the table before the column.",
    "duplicate_alias": "Give one of them another alias.",
    "undefined_table": "Check the name and `search_path`.",
    "undefined_column": "Check the name; `\\d` shows the columns.",
    "undefined_function": "Check name and types; a cast may be missing.",
    "cannot_cast": "Cast by way of `text`, where that is meant.",
    "grouping": "Add the column to GROUP BY, or aggregate it.",
    "division_by_zero": "`NULLIF(divisor, 0)` gives NULL instead.",
    "out_of_range": "Cast to a larger type before computing.",
    "too_many_rows": "Add a condition or `LIMIT 1` to the subquery.",
    "definite_error": (
        "Mend upstream, then `ALTER SOURCE ... REFRESH` ([faults](../sources/faults.md))."
    ),
    "query_canceled": "Raise `statement_timeout`, or ask for less.",
    "too_many_connections": "Close some, use a pool, or raise `max_connections`.",
    "out_of_memory": (
        "Ask for less, or raise the limit that the message names ([limits](../operate/limits.md))."
    ),
    "worker_lost": "Send it again.",
    "program_limit": "Do it in several statements, or raise the limit that the detail names.",
    "tick_exceeded": "Look at the row that is named; `tick_timeout` is the limit.",
    "lock_held": "Stop the other one, or start this one with `--standby` or `--read-only`.",
    "fenced": "End this process: another one has taken over.",
    "determinate": "Send it again: it did not happen.",
    "behind_failure": "Send both again, in order.",
    "indeterminate": "Read first whether it happened, then decide.",
    "storage_unfit": "Make room, or use a store that honours conditional puts.",
    "source_stalled": "Wait: it goes on when upstream answers.",
    "refused_here": "Ask the operator: `--connect-allow`, `--files-root`.",
    "source_broken": (
        "`ALTER SOURCE ... REFRESH` when upstream is in order ([faults](../sources/faults.md))."
    ),
    "corrupt": (
        "Restore from a [backup](../operate/backup.md); `noonmark shard verify` lists what is "
        "damaged."
    ),
    "missing_object": "Restore from a [backup](../operate/backup.md).",
    "newer_format": (
        "Use the version that wrote it, or a newer one ([upgrade](../operate/upgrade.md))."
    ),
    "internal": "Report it, with the traceback.",
    "not_answered": "Read serializable, or ask the server that writes.",
}
