"""The page on a free loopback port, served by uvicorn in a thread."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import uvicorn

from advisor.web.app import application
from advisor.web.patience import ImpatientProtocol
from advisor.web.picture import Source
from tests.servers.process import free_port


@contextlib.contextmanager
def served(source: Source, **options: Any) -> Iterator[str]:
    """The address of the page over a source; options as `application` takes them."""
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(
            application(source, **options),
            host="127.0.0.1",
            port=port,
            log_level="warning",
            http=ImpatientProtocol,
            limit_concurrency=200,
            lifespan="off",
            timeout_graceful_shutdown=1,
            server_header=False,
        )
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 15
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    assert server.started
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)
