"""Labelling of golds by a person: pools of chunks, marks, undo, saving, second opinions. No screen."""
