"""The edit distance of two texts, up to a limit."""

from __future__ import annotations


def edit_distance(first: str, second: str, most: int) -> int | None:
    """Return Levenshtein's distance, None if it is above `most`.

    Only cells within `most` of the diagonal can lead to a distance that small, so the time is `most` times the length.
    """
    if abs(len(first) - len(second)) > most:
        return None
    beyond = most + 1
    above = [min(column, beyond) for column in range(len(second) + 1)]
    for row, sign in enumerate(first, start=1):
        start = max(1, row - most)
        end = min(len(second), row + most)
        current = [beyond] * (len(second) + 1)
        if start == 1:
            current[0] = min(row, beyond)
        for column in range(start, end + 1):
            replaced = above[column - 1] + (sign != second[column - 1])
            shifted = min(above[column], current[column - 1]) + 1
            current[column] = min(replaced, shifted, beyond)
        if min(current[start - 1 : end + 1]) > most:
            return None
        above = current
    return above[-1] if above[-1] <= most else None
