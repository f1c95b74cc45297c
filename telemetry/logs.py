"""Logging to standard error, one line a message, as journald or a terminal wants it."""

from __future__ import annotations

import logging
import os
import sys

_PRIORITY = {  # sd-daemon(3): journald reads a line's level from its beginning
    logging.DEBUG: "<7>",
    logging.INFO: "<6>",
    logging.WARNING: "<4>",
    logging.ERROR: "<3>",
    logging.CRITICAL: "<2>",
}


class _Lines(logging.Formatter):
    """Messages are one line each, whatever a device or a server said."""

    def __init__(self, *, journal: bool) -> None:
        super().__init__("%(message)s" if journal else "%(asctime)s %(levelname)s %(message)s")
        self._journal = journal

    def format(self, record: logging.LogRecord) -> str:
        message = super().format(record)
        if record.exc_info is None:
            message = " ".join(message.splitlines())
        return _PRIORITY.get(record.levelno, "<5>") + message if self._journal else message


def start(level: str) -> None:
    """Sends what is logged from `level` on (debug, info, warning, error) to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(journal="JOURNAL_STREAM" in os.environ))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Of other libraries, what is wrong; their debug output may hold headers.
    for name in ("influxdb_client", "urllib3", "Rx"):
        logging.getLogger(name).setLevel(logging.WARNING)
