"""Assertions of a case: their types, how they are written, and whether they hold for an answer."""
