"""Values that depend on each other, such as those of the turns of one conversation: one value for each cluster."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

from pytest_rageval.stats.intervals import Column, Interval, mean_interval
from pytest_rageval.stats.paired_test import PairedTest, paired_test

Clusters = Sequence[Hashable]
"""The cluster of each value, in the same order; a value that depends on no other has one of its own."""


def cluster_values(values: Sequence[float], clusters: Clusters) -> Sequence[float]:
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


def cluster_interval(values: Sequence[float], clusters: Clusters, scale: Sequence[float]) -> Interval | None:
    """Return the interval for the mean of values that depend on each other in clusters; None below five clusters."""
    if not values:
        return None
    interval = mean_interval(cluster_values(values, clusters), scale)
    if interval is None:
        return None
    # A long cluster moves the mean by more than the scale is wide; the mean itself stays on the scale.
    low, high = interval
    return max(low, scale[0]), min(high, scale[1])


def changed_clusters(differences: Sequence[float], clusters: Clusters) -> int:
    """Return in how many clusters a value changed."""
    return len({cluster for difference, cluster in zip(differences, clusters, strict=True) if difference})


def clustered_test(differences: Sequence[float], clusters: Clusters, widest: float) -> PairedTest:
    """Return the test of whether the mean of differences, at least one, is 0, if they depend on each other."""
    changed = changed_clusters(differences, clusters)
    # A cluster without a change has a value of its own where sizes differ: it is not one of the changed ones.
    return paired_test(cluster_values(differences, clusters), widest, changed=changed)


def clustered_columns(columns: Mapping[str, Column], clusters: Clusters) -> dict[str, Column]:
    """Return columns with one value for each cluster, in one order; each column keeps its mean.

    columns  the values of each name, in one order of cases; None for a case without a value
    """
    order = list(dict.fromkeys(clusters))
    by_cluster: dict[str, Column] = {}
    for name, column in columns.items():
        values: list[float] = []
        of_values: list[Hashable] = []
        for value, cluster in zip(column, clusters, strict=True):
            if value is not None:
                values.append(value)
                of_values.append(cluster)
        moved: dict[Hashable, float] = {}
        if values:
            present = dict.fromkeys(of_values)
            moved = dict(zip(present, cluster_values(values, of_values), strict=True))
        by_cluster[name] = [moved.get(cluster) for cluster in order]
    return by_cluster
