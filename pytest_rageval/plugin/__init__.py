"""The face for pytest."""
