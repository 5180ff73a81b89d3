"""Case files: discovery, reading, checking."""
