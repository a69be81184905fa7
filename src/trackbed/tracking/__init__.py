"""The record of a run: attempts, params, metrics, logs, artifacts, facts.

    runs ─ runs_attempts ─ runs_views            what was asked, each try, as people read it
    ingest_parse ► ingest ► ingest_summary       frames in, exactly once, judged item by item
    metrics_tail ─ metrics_sealed ► metrics_view ► metrics · metrics_cells ► metrics_series      points out
    metrics_sealing                              points move from frames into objects of the store
    logs · artifacts · facts                     lines, files, params and tags out
    search_parse ► search                        the filter language of the runs table

Functions take `tx` first, then the scope where persons ask; none opens a transaction. Tables: `runs_tables`, `ingest_tables`.
"""
