"""What the launcher hands to the daemon through the exec.

The launcher reads the configuration with pydantic, puts the settings into a file that lives in
memory alone, and becomes the daemon: same process, none of the launcher's memory.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from typing import NoReturn

from agent.config.settings import Settings, from_json, to_json
from agent.errors import UserError


@dataclass(frozen=True, slots=True)
class Launch:
    """All that the daemon is told."""

    settings: Settings
    version: str
    simulate: str | None = None
    debug: bool = False


def become_daemon(launch: Launch) -> NoReturn:
    """Replaces this process by the daemon, keeping its id. Raises UserError if it cannot."""
    descriptor = os.memfd_create("talla-launch", 0)  # without CLOEXEC: the daemon reads it
    os.write(descriptor, encode(launch))
    os.lseek(descriptor, 0, os.SEEK_SET)
    sys.stdout.flush()
    sys.stderr.flush()
    # -P: a folder that happens to be the current one must not be imported from.
    try:
        os.execv(sys.executable, [sys.executable, "-P", "-m", "agent", str(descriptor)])
    except OSError as error:
        raise UserError(
            f"{sys.executable}: the daemon cannot be started ({error.strerror})"
        ) from None


def receive(descriptor: int) -> Launch:
    """What the launcher left. Raises OSError or ValueError where nobody did."""
    with os.fdopen(descriptor, "rb") as file:
        return decode(file.read())


def encode(launch: Launch) -> bytes:
    """A launch as bytes."""
    document = {
        "settings": to_json(launch.settings),
        "version": launch.version,
        "simulate": launch.simulate,
        "debug": launch.debug,
    }
    return json.dumps(document).encode()


def decode(data: bytes) -> Launch:
    """The launch that `encode` wrote."""
    document = json.loads(data)
    document["settings"] = from_json(document["settings"])
    return Launch(**document)
