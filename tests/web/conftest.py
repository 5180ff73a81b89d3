"""The app for tests of its pages."""

from web_app import web_app

__all__ = ["web_app"]
