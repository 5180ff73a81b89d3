"""For the project's own tests: pytest within pytest."""

pytest_plugins = ["pytester"]
