"""The checks of every request and the headers of every response; one subject per module."""
