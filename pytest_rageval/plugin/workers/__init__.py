"""Processes of xdist: which cases each one gets, and how they end at a second signal."""
