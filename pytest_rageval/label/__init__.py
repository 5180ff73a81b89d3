"""Golds labelled by a person: pools of chunks, marks, undo, saving, second opinions. No screen."""
