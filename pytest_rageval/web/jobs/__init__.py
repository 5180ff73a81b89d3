"""Runs that the browser starts: each a child process in a folder of its own."""
