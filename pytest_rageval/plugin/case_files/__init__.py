"""Cases of files before they are tests: changed by the project's hook, chosen by a mark."""
