"""Runs programs one at a time, and measures each from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Run, cpu_seconds, memory, nvml_calls, tree
from bench.programs import Program
from bench.staging import ROOT, WATCHDOG_USEC, Watchdog, environment


class ProgramFailed(Exception):
    """A program ended before its run did; the message holds its last words."""


def run(program: Program, staged: dict[str, str], *, warm_up: float, seconds: float) -> Run:
    """One run. Raises ProgramFailed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        watchdog = Watchdog(folder) if program.ours else None
        variables = environment(staged, folder)
        if watchdog is not None:
            variables["NOTIFY_SOCKET"] = str(watchdog.address)
            if not program.shipping:  # that one tells the end of each tick
                variables["WATCHDOG_USEC"] = WATCHDOG_USEC
        start = program.start(folder)
        try:
            with _running(program.name, start.command, variables, folder / "log") as process:
                scrape = start.scrape
                _wait(process, warm_up, scrape)
                if watchdog is not None:
                    watchdog.heard()
                pids = tree(process.pid)
                before = time.monotonic(), cpu_seconds(pids), nvml_calls(folder / "calls")
                _wait(process, seconds, scrape)
                pids = tree(process.pid)
                elapsed = time.monotonic() - before[0]
                used = cpu_seconds(pids) - before[1]
                calls = nvml_calls(folder / "calls") - before[2]
                pss, rss = memory(pids)
                times = watchdog.heard() if watchdog is not None else []
        finally:
            if watchdog is not None:
                watchdog.close()
    ticks = tuple(at % 1.0 for at in times) if program.shipping else ()
    return Run(elapsed, used, pss, rss, calls, ticks)


@contextmanager
def _running(
    name: str, command: tuple[str, ...], variables: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            env=variables,
            cwd=ROOT,
            stdout=said,
            stderr=said,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        yield process
        if process.poll() is not None:
            words = log.read_text("utf-8", "replace").strip().splitlines()
            raise ProgramFailed(f"{name} ended: {words[-1] if words else 'without a word'}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait(process: subprocess.Popen[bytes], seconds: float, scrape: str | None) -> None:
    """Lets it work; a program that works when it is scraped is scraped each second."""
    end = time.monotonic() + seconds
    while process.poll() is None and (left := end - time.monotonic()) > 0:
        if scrape is not None:
            with contextlib.suppress(OSError), urllib.request.urlopen(scrape, timeout=5) as answer:
                answer.read()
        time.sleep(min(left, 1.0 - time.time() % 1.0 if scrape is not None else left, 1.0))
