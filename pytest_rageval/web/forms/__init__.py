"""What forms send: one pydantic model a form, its errors beside the fields, its values kept."""
