"""What of a run is shown in pytest: summary lines, verdict, progress, and reports to GitHub."""
