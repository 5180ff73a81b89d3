"""Runs over several processes or machines: workers get portions of cases and send back records."""
