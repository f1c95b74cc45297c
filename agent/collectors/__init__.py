"""Collectors: each reads one part of the machine into samples."""

from __future__ import annotations

from agent.collectors.collector import Collector, Counters, Sources

__all__ = ["Collector", "Counters", "Sources"]
