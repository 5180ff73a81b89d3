"""The Python API for scripts and notebooks: evaluate cases by a function call, and get the run as an object."""
