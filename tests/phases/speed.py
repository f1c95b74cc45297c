"""How long 400 days of one server take to be told: `python -m tests.phases.speed STORE`."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time


def main(store: str) -> int:
    """Runs `talla-advisor phases` on the store; prints seconds, memory and segments."""
    command = [sys.executable, "-m", "advisor.cli", "phases", "--store", store, "--since", "400d"]
    began = time.monotonic()
    ran = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    seconds = time.monotonic() - began
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    count = len(json.loads(ran.stdout))
    print(f"400 days: {seconds:.1f} s, at most {most:.0f} MiB in a process, {count} segments")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
