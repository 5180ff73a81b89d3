"""`python -m pytest_rageval`: the `rageval` command, where its script is not on the path."""

from __future__ import annotations

from pytest_rageval.cli.main import main

main()
