"""Traces of a system in use, read as recorded answers and as drafts of cases."""
