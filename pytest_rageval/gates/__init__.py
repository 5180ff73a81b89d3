"""Gates: what must hold of a case, of a run, and against the baseline."""
