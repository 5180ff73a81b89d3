"""Comparisons of two runs: pairing, changes, verdicts."""
