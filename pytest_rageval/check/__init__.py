"""Checks of a project, of its labels, its system and its judge."""
