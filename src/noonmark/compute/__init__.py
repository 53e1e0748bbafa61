"""Compute: views on Spark, exact at every time.

    definition.Definition   a view: its name, its query, its plan
    view.View               one maintained view: created, hydrated, ticked
    dataflow.Dataflow       many views, each after those that it reads
    layer.Compute           the layer: `maintain_view` and what goes with it
    explain.explain_view    why a view costs what it costs
    audit.audit_view        a view against its definition

How views are maintained, with the law of each rule, is in ``docs/incremental.md``. Nothing is
imported here: who only needs a session does not pay for the rest.
"""
