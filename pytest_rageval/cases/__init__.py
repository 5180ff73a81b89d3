"""Files of evaluation cases: found, read, checked."""
