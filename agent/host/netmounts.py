"""What the kernel counts for each NFS and SMB mount."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.host.hostfs import decode, unescape

# Operations whose repeats are counted. A server that drops one kind of request drops them all.
_REPEATED = (b"READ", b"READ_PLUS", b"WRITE", b"GETATTR", b"LOOKUP")
_SHARE = re.compile(rb"\d+\) (\\\\[^\t\n]+)")
_MOVED = re.compile(rb"Bytes read: (\d+)\s+Bytes written: (\d+)")
_SERVER = b"Max requests in flight:"
_HERTZ = re.compile(rb"units are jiffies \((\d+) per second\)")
_COMMAND = re.compile(rb"  (\d+)\t\t(\d+)\t(\d+)\t\t\d+\t\d+")
_READ = b"8"  # [MS-SMB2] 2.2.1: the code of READ


@dataclass(frozen=True, slots=True)
class NfsCounters:
    """Counters of one NFS mount since it was mounted; times are sums over all reads, in ms."""

    server_read_bytes: int
    server_write_bytes: int
    reads: int
    read_queue_ms: int
    read_round_trip_ms: int
    retransmits: int

    def values(self) -> tuple[int, ...]:
        """All of them in the order of the fields."""
        return (
            self.server_read_bytes,
            self.server_write_bytes,
            self.reads,
            self.read_queue_ms,
            self.read_round_trip_ms,
            self.retransmits,
        )


def parse_mountstats(data: bytes) -> dict[str, NfsCounters]:
    """The NFS mounts of /proc/self/mountstats by path.

    A line of an operation is `NAME: operations transmissions timeouts bytes_sent bytes_received
    queue_ms round_trip_ms execute_ms` (rpc_print_iostats in net/sunrpc/stats.c of Linux); `bytes:`
    has the server's bytes read and written in fields 5 and 6 (struct nfs_iostats).
    Mounts whose block is cut short or of another form are left out.
    """
    found: dict[str, NfsCounters] = {}
    if b" with fstype nfs" not in data:
        return found
    for block in (b"\n" + data).split(b"\ndevice "):
        head, _, body = block.partition(b"\n")
        if b" with fstype nfs" not in head or b"per-op statistics" not in body:
            continue
        path = head.partition(b" mounted on ")[2].rpartition(b" with fstype nfs")[0]
        try:
            found[unescape(decode(path))] = _counters(body)
        except (ValueError, IndexError):
            continue
    return found


def _counters(body: bytes) -> NfsCounters:
    moved = _fields(body, b"\tbytes:")
    if moved is None:
        raise ValueError("no bytes line")
    reads = queue = round_trip = retransmits = 0
    for operation in _REPEATED:
        # The name is set to the right in a column of 12.
        fields = _fields(body, b" " + operation + b":")
        if fields is None:
            continue
        retransmits += max(0, fields[1] - fields[0])
        if operation.startswith(b"READ"):
            reads += fields[0]
            queue += fields[5]
            round_trip += fields[6]
    return NfsCounters(moved[4], moved[5], reads, queue, round_trip, retransmits)


def _fields(body: bytes, label: bytes) -> list[int] | None:
    at = body.find(label)
    if at < 0:
        return None
    at += len(label)
    return [int(field) for field in body[at : body.find(b"\n", at)].split()]


def parse_cifs_stats(data: bytes) -> dict[str, tuple[int, ...]]:
    """What /proc/fs/cifs/Stats says of each SMB share, by `//server/share`.

    Bytes read and written; then, where the kernel keeps them (CONFIG_CIFS_STATS2), the reads that
    its server answered so far and the microseconds that these took, of all its shares together.
    The form is that of SMB 2 and later (cifs_stats_proc_show and smb2_print_stats in
    fs/smb/client of Linux). Connections to the same share are summed.
    """
    found: dict[str, tuple[int, ...]] = {}
    share: str | None = None
    reads: tuple[int, ...] = ()
    hertz = 0
    for line in data.splitlines():
        if line.startswith(_SERVER):
            share, reads = None, ()
            continue
        told = _HERTZ.search(line)
        if told:
            hertz = int(told.group(1))
            continue
        command = _COMMAND.fullmatch(line)
        if command and hertz:
            if command.group(1) == _READ:
                reads = int(command.group(2)), int(command.group(3)) * 1_000_000 // hertz
            continue
        named = _SHARE.match(line)
        if named:
            share = decode(named.group(1)).strip().replace("\\", "/").lower()
            continue
        moved = _MOVED.match(line)
        if moved and share is not None:
            here = (int(moved.group(1)), int(moved.group(2)), *reads)
            before = found.get(share, (0,) * len(here))
            found[share] = tuple(old + new for old, new in zip(before, here, strict=False))
    return found
