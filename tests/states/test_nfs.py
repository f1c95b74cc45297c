"""A slow NFS server, by the counters of a real mount.

No NFS server is staged: a mount's counters were recorded on a real machine that read 1.2 GB in
reads of 0.9 MB, which took 61 ms each (the example of mountstats in the tests of
https://github.com/prometheus/procfs). Here they grow at that rate and size, and the agent's own
collector reads them each second; the GPU, the job's tasks and the pressure beside them are staged.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.collectors.collector import Sources
from agent.collectors.mount import MountCollector
from agent.host.hostfs import HostFs
from telemetry.states import Cause, State
from telemetry.window import Key, Sample
from telemetry.workload import Kind
from tests.states.stage import HEALTHY_HOST, Second, Stage, held, step

PATH = "/mnt/nfs/test"
MOUNT: Key = ("mount", PATH)
MOUNTINFO = (
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
    f"38 22 0:61 / {PATH} rw - nfs4 192.168.1.1:/srv/test rw,vers=4.0\n"
)
MOUNTSTATS = """device /dev/sda1 mounted on / with fstype ext4
device 192.168.1.1:/srv/test mounted on /mnt/nfs/test with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.0,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2
\tage:\t13968
\tcaps:\tcaps=0xfff7,wtmult=512,dtsize=32768,bsize=0,namlen=255
\tnfsv4:\tbm0=0xfdffafff,bm1=0xf9be3e,bm2=0x0,acl=0x0,pnfs=not configured
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t52 226 0 0 1 13 398 0 0 331 0 47 0 0 77 0 0 77 0 0 0 0 0 0 0 0 0
\tbytes:\t{bytes} 0 0 0 {bytes} 0 295483 0
\tRPC iostats version: 1.0  p/v: 100003/4 (nfs)
\txprt:\ttcp 832 0 1 0 11 6428 6428 0 12154 0 24 26 5726
\tper-op statistics
\t        NULL: 0 0 0 0 0 0 0 0
\t        READ: {reads} {reads} 0 207680 {bytes} 6 {round_trip_ms} 79407
\t       WRITE: 0 0 0 0 0 0 0 0
"""
READS, BYTES, ROUND_TRIP_MS = 1298, 1210214218, 79386
"""Of the recording."""
PER_SECOND = 32
"""Reads of two workers that wait for each: what 61 ms leave room for."""
IO: Second = {**HEALTHY_HOST, "pressure_io_some_ratio": 0.9, "cpu_iowait_ratio": 0.4}


class Mounted:
    """A machine with the recorded mount, and the collector that reads it."""

    def __init__(self, root: Path) -> None:
        self._proc = root / "proc" / "self"
        self._proc.mkdir(parents=True)
        (self._proc / "mountinfo").write_text(MOUNTINFO)
        self._reads, self._second = READS, 0
        self._write()
        self._collector = MountCollector(Sources(hostfs=HostFs(root)))
        self.texts: dict[str, str] = {}
        self.second(0)

    def _write(self) -> None:
        share = self._reads / READS
        text = MOUNTSTATS.format(
            reads=self._reads,
            bytes=round(BYTES * share),
            round_trip_ms=round(ROUND_TRIP_MS * share),
        )
        (self._proc / "mountstats").write_text(text)

    def second(self, reads: int) -> Second:
        """What the collector makes of a second with so many reads."""
        self._reads += reads
        self._write()
        sample = Sample(float(self._second), {})
        self._collector.collect(float(self._second), sample)
        self._second += 1
        self.texts = sample.texts[MOUNT]
        return sample.rows[MOUNT]


def training(mounted: Mounted, *, rests: bool, reads: int = PER_SECOND) -> Stage:
    """Six seconds of work and four of waiting; the loaders read in the gaps alone (their queue is
    full otherwise), or all the time."""
    stage = Stage(texts={MOUNT: mounted.texts})
    for i in range(1200):
        gap = i % 10 >= 6
        waits = gap or not rests
        row = mounted.second(reads if waits else 0)
        job = {"job_blocked_ratio": 0.7 if waits else 0.0, "job_read_bytes_per_second": 3e7}
        rows: dict[Key, Second] = {("host",): IO if waits else HEALTHY_HOST, MOUNT: row}
        stage.add(1, held(**job) if gap else step(**job), rows)
    return stage


@pytest.mark.parametrize("rests", [True, False])
def test_a_slow_nfs_server_is_named_with_its_mount(rests: bool, tmp_path: Path) -> None:
    states = training(Mounted(tmp_path), rests=rests).states(Kind.TRAINING)
    assert {(s.state, s.cause) for s in states} == {(State.STARVED, Cause.NETWORK_STORAGE)}
    for state in states:
        assert state.place is not None
        assert (state.place.measurement, state.place.name) == ("mount", PATH)
        assert state.place.fstype == "nfs4"
        assert state.place.bytes_per_second == pytest.approx(
            PER_SECOND * BYTES / READS * (0.4 if rests else 1.0), rel=0.02
        )
        assert any("read_round_trip_seconds 0.0612" in line for line in state.evidence)


def test_an_nfs_server_that_nobody_waits_for_is_not_blamed(tmp_path: Path) -> None:
    mounted = Mounted(tmp_path)
    stage = Stage(texts={MOUNT: mounted.texts})
    for i in range(600):
        # Pauses of the job's own, while another program copies from the server all the time.
        job = {"job_blocked_ratio": 0.0, "job_read_bytes_per_second": 0.0}
        rows: dict[Key, Second] = {("host",): IO, MOUNT: mounted.second(PER_SECOND)}
        stage.add(1, held(**job) if i % 10 >= 6 else step(**job), rows)
    assert {s.state for s in stage.states(Kind.TRAINING)} == {State.BUSY}
