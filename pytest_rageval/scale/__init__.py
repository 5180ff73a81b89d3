"""Runs over several processes or machines: cases handed out in portions, their records taken as they come."""
