"""The agent's command line as a user calls it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

AGENT = (sys.executable, "-m", "agent.cli")


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """What it printed, which must be JSON alone."""
        return json.loads(self.out)

    def complaint(self) -> str:
        """The one line on standard error of a command that refused; nothing else was said."""
        assert self.out == ""
        assert "Traceback" not in self.err
        (line,) = self.err.splitlines()
        return line


def talla_agent(
    *arguments: str | Path, environment: Mapping[str, str] | None = None, limit: float = 60
) -> Ran:
    """Runs `talla-agent` with arguments, and variables beside the test's own."""
    done = subprocess.run(
        [*AGENT, *map(str, arguments)],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def started(
    *arguments: str | Path, environment: Mapping[str, str] | None = None, log: Path | None = None
) -> subprocess.Popen[bytes]:
    """`talla-agent` running beside the test, what it says in `log`."""
    with open(log or os.devnull, "ab") as said:
        return subprocess.Popen(
            [*AGENT, *map(str, arguments)],
            env={**os.environ, **(environment or {})},
            stdout=said,
            stderr=said,
        )
