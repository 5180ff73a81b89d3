"""The pages, one module each: a router whose routes read, build a view and render it."""
