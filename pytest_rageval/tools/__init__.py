"""Everything besides running cases: logic only, without argument parsing or HTML."""
