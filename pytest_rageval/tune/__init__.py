"""Search for better settings: sweeps over a grid, and a session that tries one setting after another."""
