"""Owners from cgroup paths as runtimes, kubelet, Slurm and systemd make them."""

from __future__ import annotations

import pwd
import time
from pathlib import Path

import pytest

from agent.host.hostfs import HostFs
from agent.host.owners import Owner, Owners, owner_of_cgroup
from tests.collectors.tree import plant

ID = "3f4a" * 16
POD = "5f3c1b2e-1d2c-4a5b-8c9d-0123456789ab"
UNDERSCORES = POD.replace("-", "_")
POD_SLICE = f"kubepods-burstable-pod{UNDERSCORES}.slice"


@pytest.mark.parametrize(
    ("cgroup", "owner"),
    [
        (
            f"0::/kubepods.slice/kubepods-burstable.slice/{POD_SLICE}/cri-containerd-{ID}.scope",
            Owner(POD, "kubernetes_pod"),
        ),
        (f"11:memory:/kubepods/besteffort/pod{POD}/{ID}", Owner(POD, "kubernetes_pod")),
        (
            f"0::/system.slice/containerd.service/{POD_SLICE}:cri-containerd:{ID}",
            Owner(POD, "kubernetes_pod"),
        ),
        (f"0::/kubepods.slice/kubepods-pod{'0f' * 16}.slice", Owner("0f" * 16, "kubernetes_pod")),
        (f"0::/system.slice/docker-{ID}.scope", Owner(ID[:12], "container")),
        (f"12:devices:/docker/{ID}\n0::/", Owner(ID[:12], "container")),
        (f"0::/machine.slice/libpod-{ID}.scope/container", Owner(ID[:12], "container")),
        ("0::/lxc.payload.web1/system.slice/nginx.service", Owner("web1", "container")),
        (
            "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0",
            Owner("4711", "slurm_job"),
        ),
        ("8:memory:/slurm/uid_1000/job_99/step_batch/task_0", Owner("99", "slurm_job")),
        (
            f"0::/system.slice/slurmstepd.scope/job_5/step_0/docker-{ID}.scope",
            Owner("5", "slurm_job"),
        ),
        ("0::/system.slice/vllm.service", Owner("vllm.service", "systemd_unit")),
        (
            "0::/system.slice/system-vllm.slice/vllm@8000.service",
            Owner("vllm@8000.service", "systemd_unit"),
        ),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/train.service",
            Owner("train.service", "systemd_unit"),
        ),
        ("0::/user.slice/user-1000.slice/session-3.scope", None),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope", None),
        ("0::/", None),
        ("", None),
        ("garbage", None),
    ],
)
def test_owner_of_cgroup(cgroup: str, owner: Owner | None) -> None:
    assert owner_of_cgroup(cgroup) == owner


def test_a_pod_has_the_name_that_its_log_folder_tells(tmp_path: Path) -> None:
    hostfs = plant(tmp_path, f"--- /var/log/pods/team-a_llama-0_{POD}/vllm/0.log\n")
    cgroup = f"0::/kubepods.slice/{POD_SLICE}/cri-containerd-{ID}.scope"
    assert Owners(hostfs).owner(cgroup, "root") == Owner("team-a/llama-0", "kubernetes_pod")


def test_a_session_belongs_to_its_user() -> None:
    owners = Owners(HostFs("/nowhere"))
    assert owners.owner("0::/user.slice/user-1.slice/session-1.scope", "anna") == Owner(
        "anna", "user"
    )
    assert owners.owner("", None) is None


def test_users_of_the_fixture_are_not_those_of_this_machine(tmp_path: Path) -> None:
    hostfs = plant(tmp_path, "--- /etc/passwd\nanna:x:0:0::/:/bin/sh\n")
    owners = Owners(hostfs)
    assert owners.user(0, 1.0) == "anna"
    assert owners.user(7, 1.0) == "7"


def test_a_directory_server_that_hangs_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def lookup(uid: int) -> object:
        asked.append(uid)
        time.sleep(0.3)
        raise KeyError(uid)

    monkeypatch.setattr(pwd, "getpwuid", lookup)
    owners = Owners(HostFs())
    begun = time.monotonic()
    assert owners.user(999_999, 1.0) == "999999"
    assert owners.user(999_999, 2.0) == "999999"
    assert time.monotonic() - begun < 0.2
    owners._directory.wait(10.0)
    assert owners.user(999_999, 3.0) == "999999"
    assert asked == [999_999]
