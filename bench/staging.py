"""The machine that every program measures: 8 GPUs of the fake library, two processes on each."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GPUS = 8
WATCHDOG_USEC = "30000000"
"""As systemd tells the service (systemd/talla-agent.service)."""
_LIBRARY = ROOT / "tests" / "fakenvml"
_SCENARIO = """
gpus={gpus}
pcie_sleep_ms=20
gpu*.name=NVIDIA H100 80GB HBM3
gpu*.util=square:7,0,95,0.6
gpu*.mem_used_mib=ramp:600,20000,70000
gpu*.power_w=sine:40,120,650
gpu*.temp=sine:60,45,70
gpu*.pcie_rx_kbs=sine:15,100000,4000000
"""


@contextmanager
def machine(folder: Path) -> Iterator[dict[str, str]]:
    """The variables under which a program finds the staged GPUs; their processes live meanwhile."""
    subprocess.run(["make", "-s", "-C", _LIBRARY], check=True)
    program = "import signal, sys; sys.argv and signal.pause()"
    command = [sys.executable, "-c", program, "train.py", "--model", "Llama-3.1-8B"]
    holders = [subprocess.Popen(command) for _ in range(2 * GPUS)]
    try:
        lines = [
            f"gpu{number // 2}.proc={holder.pid},C,{18000 - number},{30 + number}"
            for number, holder in enumerate(holders)
        ]
        scenario = folder / "scenario.txt"
        scenario.write_text(_SCENARIO.format(gpus=GPUS) + "\n".join(lines) + "\n")
        yield {"LD_LIBRARY_PATH": str(_LIBRARY / "build"), "FAKENVML_SCENARIO": str(scenario)}
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()


class _Sink(BaseHTTPRequestHandler):
    """Takes every write, as InfluxDB does that has room."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def sink() -> Iterator[str]:
    """The address of a server that takes InfluxDB's writes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Sink)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Watchdog:
    """Hears the daemon's WATCHDOG=1, as systemd would: without WATCHDOG_USEC it ends each tick.

    The kernel stamps each datagram as it is sent (SO_TIMESTAMPNS), so that a busy listener makes no
    tick look long.
    """

    def __init__(self, folder: Path) -> None:
        self.address = folder / "notify"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket.bind(str(self.address))
        self._times: list[float] = []
        self._closed = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while not self._closed:
            data, extra, _, _ = self._socket.recvmsg(4096, 64)
            for _, kind, stamp in extra:
                if kind == _SO_TIMESTAMPNS and data == b"WATCHDOG=1":
                    seconds = int.from_bytes(stamp[:8], sys.byteorder)
                    nanoseconds = int.from_bytes(stamp[8:16], sys.byteorder)
                    self._times.append(seconds + nanoseconds / 1e9)

    def heard(self) -> list[float]:
        """Unix times of the words since the last call."""
        times, self._times = self._times, []
        return times

    def close(self) -> None:
        """Ends listening."""
        self._closed = True
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"", str(self.address))
        self._thread.join()
        self._socket.close()


_SO_TIMESTAMPNS = 35  # asm-generic/socket.h


def free_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment(staged: dict[str, str], folder: Path) -> dict[str, str]:
    """The variables of one run; its calls of NVML are counted under FAKENVML_STATS."""
    return {**os.environ, **staged, "FAKENVML_STATS": str(folder / "calls")}
