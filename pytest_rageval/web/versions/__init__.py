"""Versions of agents and datasets: plain files that are written once and never changed."""
