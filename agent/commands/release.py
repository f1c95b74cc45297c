"""`talla-agent release`: lets go of the GPUs' device files, and takes them back."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from agent.commands.options import add_config

if TYPE_CHECKING:
    from agent.host.hostfs import HostFs

_PATIENCE = 10.0
_LOOK_EVERY = 0.1


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "release",
        help="let go of the GPUs for a driver upgrade (--resume: take them back)",
        description="Tells the running daemon to close the GPUs' device files, so that the driver"
        " can be unloaded and replaced, and waits until it has; --resume takes the GPUs back, with"
        " the driver that is then there. The host is sampled meanwhile. A daemon that is started"
        " anew takes the GPUs at once.",
    )
    parser.add_argument("--resume", action="store_true", help="take the GPUs back")
    add_config(parser)
    parser.add_argument("--store", metavar="FILE", help="the store of the daemon that is meant")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Signals the daemon; says what still holds the driver."""
    import os
    from pathlib import Path

    from agent.config.load import load
    from agent.errors import UserError
    from agent.host.hostfs import HostFs
    from agent.running import RELEASE, RESUME, daemon_of, holders

    store = Path(args.store or load(args.config).store.path)
    hostfs = HostFs()
    pid = daemon_of(store, hostfs)
    if pid is None:
        raise UserError(f"no daemon writes {store}: nothing to ask (see --config and --store)")
    try:
        os.kill(pid, RESUME if args.resume else RELEASE)
    except PermissionError:
        raise UserError(f"the daemon (pid {pid}) is another user's: run this with sudo") from None
    except ProcessLookupError:
        raise UserError(f"the daemon (pid {pid}) has just ended") from None
    if args.resume:
        print(f"The daemon (pid {pid}) takes the GPUs back.")
        return 0
    _wait_until_released(hostfs, pid)
    print(f"The daemon (pid {pid}) has let go of the GPUs.")
    others = [f"{name} (pid {number})" for number, name in holders(hostfs)]
    if others:
        print(f"Others still hold the driver: {', '.join(others)}")
    print("Take them back with: talla-agent release --resume")
    return 0


def _wait_until_released(hostfs: HostFs, pid: int) -> None:
    from agent.errors import UserError
    from agent.running import nvml_children

    end = time.monotonic() + _PATIENCE
    while children := nvml_children(hostfs, pid):
        if time.monotonic() > end:
            raise UserError(
                f"the daemon's NVML process (pid {children[0]}) does not end: it hangs in a call of"
                " the driver; reset the GPU or restart the machine"
            )
        time.sleep(_LOOK_EVERY)
