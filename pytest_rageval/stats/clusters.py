"""Values that depend on each other, such as those of the turns of one conversation: one value for each cluster."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence


def cluster_values(values: Sequence[float], clusters: Sequence[Hashable]) -> Sequence[float]:
    """Return one value for each cluster; their plain mean is the mean of all values.

    Forty turns of eight conversations are eight independent observations, not forty. Clusters of several sizes make the
    mean a ratio of two sums; its linear form gives each cluster the mean plus how far its values move it. Intervals
    and tests of independent values then hold for these. Clusters of one value each give the values as they are.
    Source: Cochran 1977, "Sampling Techniques", chapter 9 (the ratio to size of clusters of unequal sizes).

    values    at least one
    clusters  to which cluster each value belongs, in the same order
    """
    by_cluster: dict[Hashable, list[float]] = {}
    for value, cluster in zip(values, clusters, strict=True):
        by_cluster.setdefault(cluster, []).append(value)
    if len(by_cluster) == len(values):
        return values
    mean = math.fsum(values) / len(values)
    clusters_per_value = len(by_cluster) / len(values)
    moved: list[float] = []
    for members in by_cluster.values():
        offset = math.fsum(value - mean for value in members)
        moved.append(mean + offset * clusters_per_value)
    return moved
