"""Serves the page beside the service's jobs, in a thread of its own."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import uvicorn

from advisor.config import Settings
from advisor.state import Snooze, State
from advisor.web.app import application
from advisor.web.findings import Findings
from advisor.web.fleet import FleetSource
from advisor.web.local import LocalSource
from advisor.web.patience import ImpatientProtocol
from advisor.web.picture import Source

_LOG = logging.getLogger(__name__)

_MOST_CONNECTIONS = 200
_MOST_HEAD_BYTES = 16_384
_STOP_SECONDS = 3.0


class PageServer:
    """The page of a service. `start` returns at once; a port that is taken is told, and no more:
    alerts go out without the page too."""

    def __init__(
        self,
        settings: Settings,
        state: State,
        stores: Sequence[Path] = (),
        config: Path | None = None,
    ) -> None:
        """`config` is the settings' file. Raises ConfigError where the token cannot be read."""
        self._settings = settings
        page = settings.page
        paths = list(stores) or [Path(store) for store in settings.stores]
        fleet = bool(settings.influx.url)
        source: Source = FleetSource(settings.influx) if fleet else LocalSource(paths)

        def snoozes() -> Sequence[Snooze]:
            return state.snoozes(time.time())

        self._app = application(
            source,
            language=settings.language,
            token=page.token(),
            loopback=page.loopback,
            findings=None if fleet else Findings(paths, config),
            reports=Path(settings.report.folder),
            snoozes=snoozes,
        )
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self.url: str | None = None

    def start(self) -> None:
        """Begins to serve."""
        page = self._settings.page
        family = socket.AF_INET6 if ":" in page.address else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((page.address, page.port))
        except OSError as error:
            listener.close()
            _LOG.error(
                "the page is not served: %s port %d: %s; set [page] port, or enabled = false",
                page.address,
                page.port,
                error.strerror or error,
            )
            return
        config = uvicorn.Config(
            self._app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_MOST_CONNECTIONS,
            h11_max_incomplete_event_size=_MOST_HEAD_BYTES,
            http=ImpatientProtocol,
            ws="none",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run,
            kwargs={"sockets": [listener]},
            name="page",
            daemon=True,
        )
        self._thread.start()
        host = f"[{page.address}]" if ":" in page.address else page.address
        self.url = f"http://{host}:{page.port}/"
        _LOG.info("the page is at %s", self.url)

    def stop(self) -> None:
        """Ends; open pages are cut off."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join(_STOP_SECONDS)


__all__ = ["PageServer"]
