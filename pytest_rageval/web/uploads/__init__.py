"""Uploaded files: they wait under an id of their own until they are looked at, mapped and confirmed."""
