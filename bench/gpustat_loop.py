"""gpustat once a second, as `gpustat --watch 1` asks, without its drawing of a terminal."""

from __future__ import annotations

import time

import gpustat

while True:
    gpustat.new_query()
    time.sleep(1.0 - time.time() % 1.0)
