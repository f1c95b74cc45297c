"""Ages of samples, as the daemon's status and the check-up tell them."""

from __future__ import annotations

from collections.abc import Mapping


def told_ages(ages: Mapping[str, float]) -> str:
    """Ages of samples by collector for people, those that are equal told together."""
    by_age: dict[int, list[str]] = {}
    for name, seconds in sorted(ages.items()):
        by_age.setdefault(round(seconds), []).append(name)
    return ", ".join(f"{' '.join(names)} {age} s ago" for age, names in sorted(by_age.items()))
