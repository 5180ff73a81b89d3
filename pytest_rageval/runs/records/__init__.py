"""The two lines of a case and trial, its result and its observation: written, read back and checked."""
