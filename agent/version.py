"""The version of the installed distribution."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """Such as 0.1.0. Looked up by the launcher: importing what it takes is not for the daemon."""
    try:
        return metadata.version("talla")
    except metadata.PackageNotFoundError:
        return "(not installed)"
