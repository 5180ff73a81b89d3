"""Agents and datasets in versions: plain files that are written once, read back, compared and never changed."""
