"""Parts of a case's page, each worked out of what the run recorded."""
