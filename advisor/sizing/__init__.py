"""Sizing: one module a dimension, each from a case to a finding or an abstention."""

from __future__ import annotations

from collections.abc import Callable

from advisor.finding import Finding
from advisor.sizing import (
    cpu,
    gpu_class,
    gpu_count,
    interconnect,
    network,
    overall,
    pcie,
    power,
    ram,
    storage,
    usage,
    vram,
)
from advisor.sizing.case import Case

DIMENSIONS: tuple[Callable[[Case], Finding], ...] = (
    gpu_count.judge,
    gpu_class.judge,
    vram.judge,
    interconnect.judge,
    pcie.judge,
    cpu.judge,
    ram.judge,
    storage.judge,
    network.judge,
    power.judge,
    usage.judge,
)


def judge(case: Case) -> tuple[Finding, ...]:
    """The overall finding, then one a dimension."""
    findings = [dimension(case) for dimension in DIMENSIONS]
    return (overall.judge(case, findings), *findings)
