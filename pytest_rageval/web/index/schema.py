"""Tables of the index. A file of another layout is made anew from the run folders."""

from __future__ import annotations

import zlib

APPLICATION_ID = 0x52414758
"""Marks a file as ours in its header ("RAGX")."""

_RUNS = """
CREATE TABLE runs (
    run_id TEXT PRIMARY KEY NOT NULL,
    stamp TEXT NOT NULL,
    state TEXT NOT NULL,
    begun TEXT NOT NULL,
    ended TEXT,
    source TEXT NOT NULL,
    series TEXT NOT NULL,
    agent TEXT, agent_version TEXT,
    dataset TEXT, dataset_version TEXT,
    dataset_hash TEXT,
    target TEXT,
    judge TEXT,
    k INTEGER,
    is_partial INTEGER NOT NULL DEFAULT 0,
    cases INTEGER, passed INTEGER, failed INTEGER, errors INTEGER, skipped INTEGER, known INTEGER,
    selected INTEGER,
    newly_failing INTEGER, fixed INTEGER,
    overall REAL,
    points REAL,
    p95_ms REAL,
    cost_usd REAL,
    seconds INTEGER,
    compared_with TEXT,
    description TEXT,
    tone TEXT, word TEXT, sentence TEXT,
    problem TEXT,
    searched TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX runs_in_time ON runs (begun, run_id);
CREATE INDEX runs_of_series ON runs (series, begun, run_id);
CREATE INDEX runs_of_dataset ON runs (dataset_hash, begun, run_id);
CREATE TABLE run_metrics (
    run_id TEXT NOT NULL,
    metric TEXT NOT NULL,
    mean REAL, low REAL, high REAL,
    scored INTEGER,
    PRIMARY KEY (run_id, metric)
) WITHOUT ROWID;
CREATE TABLE run_settings (run_id TEXT PRIMARY KEY NOT NULL, settings TEXT NOT NULL);
"""
# The cases of a run are in two tables of their own, cases_N and texts_N, whose columns depend on the run's
# metrics. `against` is the run that was chosen to compare it with; '' stands for what it was compared with at its end.
_CASES = """
CREATE TABLE case_tables (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    against TEXT NOT NULL,
    stamp TEXT NOT NULL,
    loaded REAL NOT NULL,
    seconds REAL NOT NULL,
    cases INTEGER NOT NULL,
    facts TEXT NOT NULL
);
CREATE UNIQUE INDEX case_tables_by_run ON case_tables (run_id, against);
"""
TABLES = _RUNS + _CASES
LAYOUT = zlib.crc32(TABLES.encode()) & 0x7FFFFFFF
"""What `user_version` of a file with these tables says: it changes with them."""
