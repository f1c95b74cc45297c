"""A small scenario as a document, which tests change."""

from __future__ import annotations

import copy
from typing import Any

from telemetry.simulation import Scenario, read_scenario

_NODE: dict[str, Any] = {
    "title": "A node",
    "seed": 5,
    "server": {
        "host": "node",
        "memory": "64 GiB",
        "swap": "nvme0n1",
        "cpu": {"model": "x", "sockets": 1, "physical_cores": 32, "threads": 64},
        "gpus": [{"name": "NVIDIA H100 80GB HBM3", "count": 2}],
        "disks": {"nvme0n1": {"kind": "nvme", "size": "1 TB"}},
        "nics": {"eno1": {"speed": "1 Gb/s"}},
        "mounts": {
            "/": {"on": "nvme0n1"},
            "/data": {"on": "eno1", "fstype": "nfs4", "source": "nas:/data"},
        },
    },
    "jobs": {
        "run": {
            "like": "training",
            "command": "python pretrain.py",
            "user": "u",
            "owner": "u",
            "host_memory": "20 GiB",
            "compute": "10 s",
            "input": {"mount": "/data", "chunk": "2 GB", "workers": 16},
        }
    },
}


def changed(changes: dict[str, Any]) -> dict[str, Any]:
    """The document with values by path, parts separated by `|`; None removes."""
    document = copy.deepcopy(_NODE)
    for path, value in changes.items():
        *above, last = path.split("|")
        table = document
        for part in above:
            table = table.setdefault(part, {})
        if value is None:
            del table[last]
        else:
            table[last] = value
    return document


def node(changes: dict[str, Any] | None = None) -> Scenario:
    """A node with one training run on both cards, fed over 1 Gb/s."""
    return read_scenario(changed(changes or {}), "node.toml")
