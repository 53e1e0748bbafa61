"""The meaning of plans, in plain Python: the definition that every engine is compared with.

    relation, window   what each relation and each window call means
    judge              a view's query as it is written, by that meaning
    evaluation         the same answers in time that follows the rows: what small reads are answered
    by semi_naive         recursive queries by what each round adds
    window_frames      window calls over one sorted partition; `frame_folds` for their aggregates

Law: `evaluation` gives, for every plan, the multiset that `relation` gives.
"""
