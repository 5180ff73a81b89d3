"""Two runs side by side: pairing, changes, verdicts."""
