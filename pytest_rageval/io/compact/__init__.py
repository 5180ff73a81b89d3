"""Values of a million cases in a few pieces of memory, where as many objects would take ten times as much."""
