"""Checks of a project before its first run: what is fine, what is doubtful, what is wrong, and how to mend it."""
