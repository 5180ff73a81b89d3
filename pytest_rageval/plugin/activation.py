"""The start of a session with cases: what is common to all processes, and the role of this one."""

from __future__ import annotations

from pytest_rageval.plugin.active import ActiveSession
from pytest_rageval.plugin.controller import Controller
from pytest_rageval.plugin.light_session import LightSession
from pytest_rageval.plugin.worker import Worker


def activate(session: LightSession) -> ActiveSession:
    """Begin a session with cases, on whichever process."""
    active = ActiveSession(session)
    manager = session.config.pluginmanager
    if session.is_worker:
        active.role = Worker(active)
        manager.register(active.role, "rageval-worker")
    else:
        controller = Controller(active)
        active.role = controller
        session.control = controller
        manager.register(controller, "rageval-controller")
    manager.register(active, "rageval-active")
    return active
