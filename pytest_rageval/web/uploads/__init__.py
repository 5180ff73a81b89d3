"""Uploaded files, which wait under an id until they are previewed, mapped and confirmed."""
