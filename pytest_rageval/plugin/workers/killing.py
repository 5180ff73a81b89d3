"""The end of xdist's workers at a second signal: by force, after a moment."""

from __future__ import annotations

import pytest

PATIENCE = 0.3
"""Seconds in which workers may end by themselves at a second signal."""


def kill_workers(config: pytest.Config) -> bool:
    """End the workers of xdist, by force after a moment; True if there are none any more.

    xdist itself gives them ten seconds, more than who presses Ctrl-C twice will wait.
    """
    controller = config.pluginmanager.get_plugin("dsession")
    if controller is None:
        return True
    group = getattr(getattr(controller, "nodemanager", None), "group", None)
    if group is None:
        return False
    group.terminate(timeout=PATIENCE)
    return True
