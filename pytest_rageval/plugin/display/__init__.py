"""The display of a run in pytest: summary lines, verdict, progress, and reports to GitHub."""
