"""Which GPUs share an inference engine, where a log gives its figures but not its port.

The figures are those of the whole engine, repeated on each GPU of its group: GPUs whose figures
are the same at the same times are one group.
"""

from __future__ import annotations

from advisor.importers.recording import Recording, Track

_SAME = 0.99


def name_engines(recording: Recording) -> None:
    """Fills `recording.engines`, unless the log names the engine's port."""
    told = [
        track
        for track in recording.tracks.values()
        if track.uuid is not None and any(place[0] == "engine" for place in track.values)
    ]
    if any(("engine", "port") in track.texts for track in told):
        return
    groups: list[tuple[dict[float, tuple[float | None, ...]], list[str]]] = []
    for track in told:
        figures = _figures(track)
        for known, members in groups:
            if _alike(known, figures):
                members.append(track.uuid or "")
                break
        else:
            groups.append((figures, [track.uuid or ""]))
    for _, members in groups:
        recording.engines.update(dict.fromkeys(members, tuple(members)))


def _figures(track: Track) -> dict[float, tuple[float | None, ...]]:
    """The engine's figures by whole second."""
    cells = [track.values[p] for p in sorted(track.values) if p[0] == "engine"]
    return {round(t): tuple(c.get(i) for c in cells) for i, t in enumerate(track.times)}


def _alike(
    one: dict[float, tuple[float | None, ...]], other: dict[float, tuple[float | None, ...]]
) -> bool:
    common = one.keys() & other.keys()
    return bool(common) and sum(one[t] == other[t] for t in common) >= _SAME * len(common)
