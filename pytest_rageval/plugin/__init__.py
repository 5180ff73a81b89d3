"""The face for pytest."""

from pytest_rageval.plugin.plain_imports import import_plainly

import_plainly()  # here, since the first of the other modules would be rewritten otherwise
