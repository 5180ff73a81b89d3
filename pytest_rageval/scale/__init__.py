"""Runs over several machines: cases handed out in portions, their records taken as they come."""
