"""A read-only server: another server on a location, beside its writer or without one.

    database     the parts of it that are not the writer's
    catalog      the catalog, followed in the log
    work         no sources, views or tables of its own: what is not complete is asked for
    times        the timeline of the writer, asked for
    questions    what a replica asks the writer, and what that answers
    refused      what a read-only server does not do

Law (exact): an answer at a time is what the writer answers AS OF that time: both read the same
collections at times at which these are complete.
Law (own frontier): a serializable read is at the last time that is complete in the log as this
process has followed it. It asks nobody, so it is answered while nobody writes, too.
Law (strict): a strict serializable read is at a time that the oracle of the writer gave after the
read had begun, and where the writer cannot be asked it is refused, never guessed.
Law (nothing written): its only entries in the log are its own holds.
"""
