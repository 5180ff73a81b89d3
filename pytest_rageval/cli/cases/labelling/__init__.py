"""The faces of a labelling session: a full screen, and numbers by line."""
