"""One real server as a child process on loopback: started, found ready, stopped or killed."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tests.require import need_program

READY_SECONDS = 30.0
STOP_SECONDS = 10.0

Started = TypeVar("Started")


class ServerFailed(RuntimeError):
    """The server did not come up; the message ends with its log."""


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(url: str) -> bool:
    """Whether an HTTP server gives any answer at ``url``, an error status included."""
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return True
    except (OSError, http.client.HTTPException):
        return False


class ServerProcess:
    """``command`` running in ``folder``, in a process group of its own.

    ``ready`` is asked until it is true. Start, stop, kill and start again as often as wanted.
    """

    def __init__(self, command: Sequence[str], folder: Path, ready: Callable[[], bool]) -> None:
        # The server dies with the test process, even where that one is killed.
        # (More exactly with the thread that starts it: start servers from the main one.)
        setpriv = need_program("setpriv", "util-linux")
        self._command = [str(setpriv), "--pdeathsig", "KILL", *command]
        self._name = command[0]
        self._ready = ready
        self._folder = folder
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self._folder / "server.log"

    def start(self) -> None:
        """Return once the server is ready; raise `ServerFailed` when it exits or stays silent."""
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self._child.poll() is not None:
                raise ServerFailed(self._complaint(f"exited {self._child.returncode}"))
            # Asked twice: another server may hold the port while ours is about to give up.
            if self._ready() and self._child.poll() is None:
                return
            time.sleep(0.05)
        self.kill()
        raise ServerFailed(self._complaint(f"was not ready in {READY_SECONDS:.0f} s"))

    @property
    def pid(self) -> int:
        """Of the running server."""
        assert self._child is not None
        return self._child.pid

    def stop(self) -> None:
        """Ask the server to end, and make it end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """``kill -9``, as a power cut would."""
        self._end(signal.SIGKILL)

    def _end(self, first: signal.Signals) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, first)
        try:
            child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def _complaint(self, what: str) -> str:
        tail = self.log.read_text(errors="replace")[-2000:]
        return f"{self._name} {what}; its log ends:\n{tail}"


def on_free_ports(launch: Callable[[], Started], attempts: int = 5) -> Started:
    """What ``launch`` returns; tried anew when somebody took the port that it had chosen."""
    for attempt in range(attempts):
        try:
            return launch()
        except ServerFailed:
            if attempt == attempts - 1:
                raise
    raise AssertionError("unreachable")
