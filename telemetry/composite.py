"""Metrics that follow from others of the same second, such as used as a share of total."""

from __future__ import annotations

from telemetry.window import Sample

KV_FULL_RATIO = 0.95
"""From this share of its KV cache on an engine has no room for a request that waits (own choice,
just below where vLLM begins to preempt: https://docs.vllm.ai/en/stable/configuration/optimization).
"""


def add_composites(sample: Sample) -> None:
    """Adds `memory_used_ratio`, `used_ratio` and `saturated_ratio` where their parts are there."""
    for key, row in sample.rows.items():
        match key[0]:
            case "host":
                _share(row, "memory_used_bytes", "memory_total_bytes", "memory_used_ratio")
            case "mount":
                _share(row, "used_bytes", "size_bytes", "used_ratio")
            case "engine":
                usage, waiting = row.get("kv_cache_usage_ratio"), row.get("requests_waiting")
                if usage is not None and waiting is not None:
                    full = usage >= KV_FULL_RATIO and waiting > 0
                    row["saturated_ratio"] = 1.0 if full else 0.0


def _share(row: dict[str, float], part: str, whole: str, name: str) -> None:
    used, total = row.get(part), row.get(whole)
    if used is not None and total:
        row[name] = min(1.0, used / total)
