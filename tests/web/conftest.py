"""The app for tests of its pages."""

from web_app import app, web_app

__all__ = ["app", "web_app"]
