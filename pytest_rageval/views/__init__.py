"""What people are shown of a run, a comparison, a calibration, a sweep and a history, before any face renders it."""
