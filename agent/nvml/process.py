"""The NVML child as its parent sees it: a process, a pipe, and a mark of what it is doing."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import select
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.nvml.driver import IDLE, MARK_BYTES

START_SECONDS = 30.0
"""How long loading Python and initialising NVML may take: without persistence mode the driver
wakes every GPU of the server for it."""
LONGEST_ANSWER = 16 << 20
_STARTING = b"\0nvmlInit\0"
"""The mark while NVML initialises: no GPU, and the function."""
_ROOT = Path(__file__).resolve().parents[2]


class ChildFailed(Exception):
    """The child is of no more use. `index` is the GPU that it was asking, where that is known."""

    def __init__(self, reason: str, index: int | None, function: str, *, hung: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.index = index
        self.function = function
        self.hung = hung
        self.crashed_in_driver = False
        self.from_outside = False
        """Whether somebody killed it: a person, or the kernel for want of memory."""


class NvmlProcess:
    """One child process. It must be started by a thread that lives as long as the child should:
    Linux counts the end of that thread as the death of the parent (prctl(2), PR_SET_PDEATHSIG)."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        shared = os.memfd_create("nvml-mark")
        try:
            os.ftruncate(shared, MARK_BYTES)
            self._mark = mmap.mmap(shared, MARK_BYTES)
            # -P: a folder named `agent` where the user happens to stand is not ours.
            command = [
                sys.executable,
                "-P",
                "-m",
                "agent.nvml.child",
                str(shared),
                str(os.getpid()),
            ]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=(shared,),
                start_new_session=True,
                env=_importable(os.environ if environment is None else environment),
            )
        finally:
            os.close(shared)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._out, False)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._received = bytearray()
        self._request: tuple[dict[str, Any], bytes] = {}, b""
        """The last request and its line, which the next tick's is too."""
        self._answer: dict[str, Any] | None = None
        """The line of an answer whose readings have not come yet."""
        self._seen = IDLE
        self._seen_at = time.monotonic()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def ask(self, request: dict[str, Any]) -> None:
        """Send a request. Raises ChildFailed where the child has ended."""
        self._seen_at = time.monotonic()
        if request != self._request[0]:
            self._request = request, json.dumps(request).encode() + b"\n"
        try:
            os.write(self._in, self._request[1])
        except OSError:
            raise self._ended() from None

    def answer(self, wait: float, deadline: float) -> dict[str, Any] | None:
        """The answer to the request, None if it has not come within `wait` seconds.

        Raises ChildFailed where the child has ended, or where one and the same call has not
        returned for `deadline` seconds: slow calls that do return are not held against it.
        """
        until = time.monotonic() + wait
        while True:
            now = time.monotonic()
            overdue = self._overdue(now, deadline)
            slice_seconds = max(0.0, min(until - now, overdue, 0.25))
            if self._poll.poll(slice_seconds * 1000):
                answer = self._read()
                if answer is not None:
                    return answer
                continue
            if self._overdue(time.monotonic(), deadline) <= 0:
                index, function = self.doing()
                what = f"{function or 'the child process'} has not returned"
                where = f"GPU {index}: " if index is not None else ""
                reason = f"{where}{what} for {deadline:g} s"
                raise ChildFailed(reason, index, function, hung=True)
            if time.monotonic() >= until:
                return None

    def _overdue(self, now: float, deadline: float) -> float:
        """Seconds until the call in progress counts as hung."""
        mark = self._mark[:MARK_BYTES]
        if mark != self._seen:
            self._seen, self._seen_at = mark, now
        if mark == IDLE or mark.startswith(_STARTING):  # Python or NVML is starting
            deadline = max(deadline, START_SECONDS)
        return self._seen_at + deadline - now

    def _read(self) -> dict[str, Any] | None:
        """A whole answer, once it is here. Raises ChildFailed at the end of the pipe."""
        try:
            chunk = os.read(self._out, 1 << 16)
        except BlockingIOError:
            return None
        if not chunk or len(self._received) > LONGEST_ANSWER:
            raise self._ended()
        self._received += chunk
        if self._answer is None:
            line, end, rest = self._received.partition(b"\n")
            if not end:
                return None
            self._answer, self._received = self._parse(line), rest
        answer, doubles = self._answer, array("d")
        number = answer.get("doubles", 0)
        if len(self._received) < number * doubles.itemsize:
            return None
        doubles.frombytes(self._received[: number * doubles.itemsize])
        self._answer = None
        self._received.clear()
        answer["doubles"] = doubles
        return answer

    def _parse(self, line: bytearray) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except ValueError:
            raise self._ended() from None
        if not isinstance(answer, dict) or not isinstance(answer.get("doubles", 0), int):
            raise self._ended()
        return answer

    def doing(self) -> tuple[int | None, str]:
        """The index of the GPU that is being asked, and the function; as far as they are known."""
        mark = self._mark[:MARK_BYTES]
        function = mark[1:].rstrip(b"\0").decode("ascii", "replace")
        return (mark[0] - 1 if mark[0] else None), function

    def _ended(self) -> ChildFailed:
        """How the child came to its end, which is near: the pipe is closed."""
        index, function = self.doing()
        try:
            code: int | None = self._process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            code = None
        if code is None or code == 0:
            how = "ended"
        elif code > 0:
            how = f"ended with code {code}"
        else:
            how = f"was killed by {_signal_name(-code)}"
        where = f" in {function}" if function else ""
        where += f" of GPU {index}" if index is not None else ""
        failed = ChildFailed(f"the NVML process {how}{where}", index, function, hung=False)
        failed.crashed_in_driver = bool(function) and code in _CRASHES
        failed.from_outside = code == -signal.SIGKILL or (not function and (code or 0) < 0)
        return failed

    def close(self, patience: float = 0.0) -> None:
        """End it: by the end of its pipe, for which it has `patience` seconds, else by a kill.

        A process in an uninterruptible call of the driver survives that: `reaped` tells.
        """
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None and not stream.closed:
                stream.close()
        if patience > 0:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=patience)
        if self._process.poll() is None:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=0.2)
        self._mark.close()

    def reaped(self) -> bool:
        """Whether nothing of it is left."""
        return self._process.poll() is not None


_CRASHES = {
    -number
    for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGILL, signal.SIGFPE)
}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _importable(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with our packages on Python's path, where they are not installed."""
    result = dict(environment)
    if _ROOT.name not in ("site-packages", "dist-packages"):
        result["PYTHONPATH"] = os.pathsep.join(
            [str(_ROOT), *filter(None, [environment.get("PYTHONPATH")])]
        )
    return result
