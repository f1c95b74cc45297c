"""Stands in for a training run: real loader workers, and a GPU that computes what they bring.

A batch is loaded by worker processes in one of several ways, and keeps the GPU busy for a fixed
time. The share of the last second in which it was busy, and the watts that go with it, are
written into a file of two doubles, which the fake NVML library gives out as the card's readings.
No module of the project is imported: this is the job that the agent looks at.
"""

from __future__ import annotations

import argparse
import mmap
import multiprocessing
import os
import random
import struct
import sys
import threading
import time
from collections import deque
from multiprocessing.queues import Queue
from pathlib import Path

IDLE_WATTS, BUSY_WATTS = 60.0, 340.0


class Gpu:
    """When it was busy, told as the share of the last second."""

    def __init__(self, live: Path) -> None:
        with live.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 16)
        self._spans: deque[tuple[float, float]] = deque(maxlen=4096)
        self._busy_since: float | None = None
        self._lock = threading.Lock()
        threading.Thread(target=self._tell, daemon=True).start()

    def compute(self, seconds: float) -> None:
        with self._lock:
            self._busy_since = time.monotonic()
        time.sleep(seconds)
        with self._lock:
            assert self._busy_since is not None
            self._spans.append((self._busy_since, time.monotonic()))
            self._busy_since = None

    def _tell(self) -> None:
        while True:
            now = time.monotonic()
            with self._lock:
                spans = list(self._spans)
                if self._busy_since is not None:
                    spans.append((self._busy_since, now))
            busy = sum(max(0.0, end - max(start, now - 1.0)) for start, end in spans)
            share = min(1.0, busy)
            watts = IDLE_WATTS + share * (BUSY_WATTS - IDLE_WATTS)
            self._map[:] = struct.pack("dd", 100.0 * share, watts)
            time.sleep(0.05)


def read_files(data: Path) -> None:
    """One file of the data set, from the medium and not from memory."""
    path = random.choice(sorted(data.glob("*.bin")))
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(1 << 20):
            pass


def touch_pages(view: mmap.mmap, pages: int) -> None:
    """Samples at random places of a mapped data set."""
    for _ in range(pages):
        view[random.randrange(len(view) // 4096) * 4096]


def decode(seconds: float) -> None:
    """Work for a processor, as the decoding of pictures is."""
    end = time.process_time() + seconds
    value = 1
    while time.process_time() < end:
        value = value * 48271 % 2147483647


def work(batches: Queue[int], args: argparse.Namespace) -> None:
    """A loader worker."""
    random.seed(os.getpid())
    view = None
    if args.mapped is not None:
        file = args.mapped.open("rb")
        view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        view.madvise(mmap.MADV_RANDOM)
    while True:
        if args.data is not None:
            read_files(args.data)
        if view is not None:
            touch_pages(view, args.pages)
        if args.decode_seconds:
            decode(args.decode_seconds)
        batches.put(1)


def save(path: Path, size: int) -> None:
    """A checkpoint, shard by shard on the medium before the training goes on."""
    block = os.urandom(1 << 20)
    with path.open("wb", buffering=0) as file:
        for number in range(size >> 20):
            file.write(block)
            if number % 16 == 15:
                os.fdatasync(file.fileno())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--live", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--step-seconds", type=float, default=0.5)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--mapped", type=Path)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--decode-seconds", type=float, default=0.0)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--checkpoint-bytes", type=int, default=0)
    parser.add_argument("--checkpoint-every", type=float, default=20.0)
    args = parser.parse_args()
    gpu = Gpu(args.live)
    context = multiprocessing.get_context("fork")
    batches: Queue[int] = context.Queue(maxsize=2)
    for _ in range(args.workers):
        context.Process(target=work, args=(batches, args), daemon=True).start()
    saved = time.monotonic()
    steps = 0
    while True:
        batches.get()
        gpu.compute(args.step_seconds)
        steps += 1
        if args.checkpoint is not None and time.monotonic() - saved > args.checkpoint_every:
            save(args.checkpoint, args.checkpoint_bytes)
            saved = time.monotonic()
        print(f"step {steps}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
