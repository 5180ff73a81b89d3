"""The pipeline in reading order: plan, prepare, ask, engine, prefetch, session, finish."""
