"""Labelling in the browser: the session of the terminal's label screen as pages and forms."""
