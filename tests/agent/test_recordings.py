"""Recordings: a machine's answers in a folder, without secrets, and the same answers from it.

A recording that a user sent becomes a test as it is: a folder below tests/golden/recordings.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agent.recording import Scrubber
from agent.replay import told_again
from tests.agent.command import talla_agent
from tests.fakenvml.staged import Scenario

GOLDEN = Path(__file__).parents[1] / "golden" / "recordings"


@pytest.mark.parametrize("folder", sorted(GOLDEN.iterdir()), ids=lambda folder: folder.name)
def test_a_recording_says_what_it_said(folder: Path) -> None:
    told = json.loads(told_again(folder))
    assert told == json.loads((folder / "expected.json").read_text("utf-8"))


def test_a_recording_that_ends_early_gives_no_rate_of_zero(tmp_path: Path) -> None:
    folder = tmp_path / "short"
    shutil.copytree(GOLDEN / "odd_names_and_a_lost_gpu", folder, symlinks=True)
    lines = (folder / "nvml.jsonl").read_text("ascii").splitlines()
    counters = [
        i
        for i, line in enumerate(map(json.loads, lines))
        if line["call"] == "nvmlDeviceGetFieldValues" and line["gpu"] == 0
    ]
    del lines[counters[-1]]
    (folder / "nvml.jsonl").write_text("\n".join(lines) + "\n", "ascii")
    first, second, _ = json.loads(told_again(folder))["gpus"]
    for metric in ("pcie_rx_bytes_per_second", "nvlink_rx_bytes_per_second", "power_watts"):
        assert metric not in first["metrics"]
        assert metric in second["metrics"]
    reason = "the recording has no further answer"
    assert first["unavailable"]["pcie_rx_bytes_per_second"] == reason
    assert first["metrics"]["utilization_ratio"] >= 0


def test_this_machine_is_recorded_without_secrets_and_played_back(
    fakenvml: Path, tmp_path: Path
) -> None:
    program = "import signal; signal.pause()"
    words = ["train.py", "--hf-token", "hf_abcdefghijklmnop", "--model", "Llama-3.1-8B"]
    job = subprocess.Popen([sys.executable, "-c", program, *words])
    try:
        text = (
            f"gpus=2\ngpu0.proc={job.pid},C,18000,55\ngpu0.name=GPU\\xf8\n"
            "gpu1.nvmlDeviceGetUtilizationRates=UNKNOWN\n"
        )
        staged = Scenario(fakenvml, tmp_path, text)
        folder = tmp_path / "recording"
        ran = talla_agent("record", folder, environment=staged.environment)
        assert (ran.code, ran.err) == (0, "")
    finally:
        job.send_signal(signal.SIGKILL)
        job.wait()
    kept = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file())
    assert b"hf_abcdefghijklmnop" not in kept
    host = os.uname().nodename
    assert len(host) <= 2 or host.encode() not in (folder / "expected.json").read_bytes()
    told = json.loads((folder / "expected.json").read_text("utf-8"))
    assert [gpu["index"] for gpu in told["gpus"]] == [0, 1]
    assert told["gpus"][0]["name"] == "GPU\\xf8"
    assert told["gpus"][1]["unavailable"]["utilization_ratio"] == "Unknown Error"
    (process,) = told["gpus"][0]["processes"]
    assert process["pid"] == job.pid
    assert "Llama-3.1-8B" in process["command"]
    assert "***" in process["command"]
    assert process["user"].startswith("user")
    assert 0 <= told["host_metrics"]["cpu_busy_ratio"] <= 1
    again = talla_agent("record", folder)
    assert again.code == 1
    assert "is there already" in again.complaint()


def test_names_of_people_and_machines_become_words() -> None:
    scrubber = Scrubber("gpu01")
    mounts = b"36 35 0:32 / /data rw - nfs4 filer.corp.example:/export rw,addr=10.1.2.3\n"
    cleaned = scrubber.clean("/proc/self/mountinfo", mounts)
    assert cleaned == b"36 35 0:32 / /data rw - nfs4 server1:/export rw,addr=192.0.2.2\n"
    assert scrubber.clean("/proc/self/mountinfo", mounts) == cleaned  # the same each time
    assert scrubber.clean("/proc/sys/kernel/hostname", b"gpu01\n") == b"host\n"
    passwd = b"root:x:0:0:root:/root:/bin/sh\nann:x:1000:1000:Ann:/home/ann:/bin/sh\n"
    assert scrubber.clean("/etc/passwd", passwd) == b"user0:x:0:0::/:\nuser1000:x:1000:1000::/:\n"
