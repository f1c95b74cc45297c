"""What people said of windows: it decides there, and the classifier learns of it."""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from advisor.classifier.model import Models, shipped_models
from advisor.classifier.table import COLUMNS, Table, shipped
from advisor.phase import Phase

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PersonLabel:
    """One GPU over [since, until), and the row of the training table that it gave."""

    label_id: int
    host: str
    gpu_uuid: str
    since: int
    until: int
    phase: Phase
    made_by: str
    row: Mapping[str, float | None]


class Labels:
    """All labels of an advisor.db."""

    def __init__(self, labels: Sequence[PersonLabel] = ()) -> None:
        self.all = tuple(labels)
        self._places: dict[tuple[str, str], list[PersonLabel]] = {}
        for label in labels:
            self._places.setdefault((label.host, label.gpu_uuid), []).append(label)

    def at(self, host: str, gpu_uuid: str, start: int) -> PersonLabel | None:
        """The newest label of the window of a GPU that begins at `start`."""
        if not self._places:
            return None
        here = self._places.get((host, gpu_uuid), ())
        return next((x for x in reversed(here) if x.since <= start < x.until), None)

    @cached_property
    def models(self) -> Models:
        """The classifiers of the shipped table and these labels."""
        if not self.all:
            return shipped_models()
        table = shipped()
        return Models(
            Table(
                [*table.phases, *(label.phase for label in self.all)],
                [*table.rows, *(label.row for label in self.all)],
                by_people=len(self.all),
            )
        )


NO_LABELS = Labels()


def read_labels(path: Path) -> Labels:
    """The labels in advisor.db; none where it is not there or may not be read."""
    if not os.access(path, os.R_OK):
        return NO_LABELS
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10.0)
        try:
            rows = db.execute(
                "SELECT label_id, host, gpu_uuid, since, until, phase, made_by, shown FROM label"
                " ORDER BY label_id"
            ).fetchall()
        finally:
            db.close()
        return Labels(
            [
                PersonLabel(n, host, gpu, since, until, Phase(phase), by, _row(shown))
                for n, host, gpu, since, until, phase, by, shown in rows
            ]
        )
    except (sqlite3.Error, ValueError, TypeError) as error:
        _LOG.info("labels of %s are not used: %s", path, error)
        return NO_LABELS


def _row(shown: str) -> dict[str, float | None]:
    cells = json.loads(shown)
    return {name: cells.get(name) for name in COLUMNS}
