"""The states of a GPU, as queries and colours; the colours are those of report and page."""

from __future__ import annotations

from dashboards.description import Per, Query, Value

STATES = {
    "busy": ("at work", "#0072b2"),
    "starved": ("kept waiting", "#d55e00"),
    "stuck": ("stuck", "#a5407c"),
    "orphan_held": ("held by a dead job", "#5b2a6e"),
    "idle_held": ("held idle", "#e6a817"),
    "idle_free": ("idle and free", "#8d9895"),
    "unknown": ("not known", "#c9d1ce"),
}
CAUSES = {
    "local_storage": "local storage",
    "cpu_dataloader": "CPU of the data loader",
    "network_storage": "network storage",
    "fuse_or_object_storage": "FUSE or object storage",
    "host_memory": "host memory",
    "checkpointing": "checkpoints",
    "pcie": "PCIe",
    "throttled": "throttling",
    "unknown": "not known",
}


def hours_by_state(per: Per, *, by: tuple[str, ...] = (), gpu: bool = False) -> tuple[Query, ...]:
    """GPU-hours in each state: the lengths of the windows that have it, added up."""
    return tuple(
        Query(
            "gpu",
            (Value("window_seconds", "sum", label, 3600),),
            by=by,
            where=(("state", state),),
            per=per,
            window="5m",
            gpu=gpu,
            alias=label,
        )
        for state, (label, _) in STATES.items()
    )


def hours_by_cause(per: Per) -> tuple[Query, ...]:
    """GPU-hours of starved windows by what held them back."""
    return tuple(
        Query(
            "gpu",
            (Value("window_seconds", "sum", label, 3600),),
            where=(("state", "starved"), ("cause", cause)),
            per=per,
            window="5m",
            alias=label,
        )
        for cause, label in CAUSES.items()
    )
