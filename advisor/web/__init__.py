"""The local page: what every GPU does now, and did in the last hours; read-only."""

from advisor.web.app import application
from advisor.web.settings import PageSettings

__all__ = ["PageSettings", "application"]
