"""`talla-agent record`: this machine's answers as a folder, for a bug report."""

from __future__ import annotations

import argparse

from agent.commands.options import add_config

_README = """A recording of one machine by talla-agent {version}, for a bug report.

host/1, host/2  the files of /proc and /sys that were read, at two samples one second apart
nvml.jsonl      what NVIDIA's library answered, call by call
expected.json   what `talla-agent once --json` says of it

Host name, user names, addresses and secrets on command lines were replaced; names of processes,
devices, mount points and models are there. Look through it before you pass it on.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "record",
        help="capture this machine's answers for a bug report, secrets removed",
        description="Takes two samples of this machine, and keeps what NVML and the files of /proc"
        " and /sys answered in a new folder, without secrets; it can be played back as a test.",
    )
    parser.add_argument("folder", metavar="DIR", help="a folder that does not exist yet")
    add_config(parser)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Records, and says where."""
    import os
    from functools import partial
    from pathlib import Path

    from agent.config.load import load
    from agent.errors import UserError
    from agent.host.hostfs import HostFs
    from agent.inventory import host_name
    from agent.machine import MachineSource
    from agent.nvml.client import NvmlClient
    from agent.once import take
    from agent.recording import RECORD_VARIABLE, RecordingHostFs, Scrubber, write_sizes
    from agent.replay import told_again
    from agent.version import version
    from telemetry import logs
    from telemetry.clock import SystemClock

    settings = load(args.config)
    logs.start("error")
    folder = Path(args.folder)
    try:
        folder.mkdir(parents=True)
        (folder / "nvml.jsonl").touch()
    except FileExistsError:
        raise UserError(f"{folder}: is there already; name a new folder") from None
    except OSError as error:
        raise UserError(f"{folder}: cannot be made ({error.strerror})") from None
    scrubber = Scrubber(host_name(HostFs()))
    hostfs = RecordingHostFs(folder / "host", scrubber)
    environment = {**os.environ, RECORD_VARIABLE: str((folder / "nvml.jsonl").absolute())}

    class Between(SystemClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            hostfs.step = 2

    client = partial(NvmlClient, environment=environment)
    source = MachineSource(settings, "host", hostfs=hostfs, patience=None, nvml=client)
    try:
        take(source, Between())
    finally:
        source.close()
    for step in ("1", "2"):
        (folder / "host" / step).mkdir(parents=True, exist_ok=True)
    write_sizes(folder, hostfs.sizes)
    # Played back, so that it is shown to work, and to hold nothing that was taken out above.
    (folder / "expected.json").write_text(told_again(folder), "utf-8")
    (folder / "README").write_text(_README.format(version=version()), "utf-8")
    print(f"{folder}: recorded. Look through it before you pass it on.")
    return 0
