"""Labelling in the browser: the session of the terminal's label screen, shown as a page and steered by forms."""
