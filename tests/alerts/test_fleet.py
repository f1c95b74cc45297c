"""False alarms over simulated healthy servers: at most one per 100 GPU-days."""

from __future__ import annotations

import pytest

from tests.alerts.fleet import false_alarms, summary


def _check(gpu_days: float, seed: int) -> None:
    done, found = false_alarms(gpu_days, seed)
    told = summary(done, found)
    print(told)
    assert sum(t.serious for _, t in found) <= done / 100, told


def test_a_few_healthy_gpu_days() -> None:
    _, found = false_alarms(0.5, 1)
    assert [(name, t.rule) for name, t in found if t.serious] == []


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_two_hundred_healthy_gpu_days() -> None:
    _check(200.0, 2)
