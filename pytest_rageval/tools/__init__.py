"""What one does beside running cases: logic only, without argument parsing or HTML."""
