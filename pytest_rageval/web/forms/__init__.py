"""The forms: one pydantic model each, with errors by field and the typed values."""
