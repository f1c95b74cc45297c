"""The dashboards: what is in the JSON, and what each query returns from the real InfluxDB."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboards.description import Kind
from dashboards.generate import DASHBOARDS
from telemetry.metrics import FAMILIES
from tests.grafana.answers import expected
from tests.grafana.filled import Filled, fill
from tests.grafana.table import INTERVAL, Asked, ask_all, page, queries
from tests.servers.influxdb import InfluxDB, V2Front

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory, influxdb: InfluxDB, influxdb_v2: V2Front
) -> Iterator[Filled]:
    influxdb.query('CREATE DATABASE "grafana"')
    yield fill(tmp_path_factory.mktemp("grafana"), influxdb, influxdb_v2, "grafana")
    influxdb.query('DROP DATABASE "grafana"')


@pytest.fixture(scope="module")
def answers(filled: Filled) -> list[Asked]:
    return list(ask_all(filled))


def shipped(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "dashboards" / f"{name}.json").read_text())
    return document


def test_every_answer_is_the_one_made_of_the_windows(filled: Filled, answers: list[Asked]) -> None:
    compared = 0
    for one in answers:
        made = expected(one.query, filled, one.window, INTERVAL)
        if made is None:
            continue
        where = f"{one.dashboard}: {one.panel.title}: {one.influxql}"
        assert one.answer.keys() == made.keys(), where
        for group, cells in made.items():
            for value, cell, told in zip(one.query.values, cells, one.answer[group], strict=True):
                if isinstance(cell, float):
                    assert isinstance(told, float | int), where
                    assert math.isclose(told, cell, rel_tol=1e-9, abs_tol=1e-12), where
                elif value.aggregate != "last" or len(one.query.by) > 1:
                    assert told == cell, where
        compared += 1
    assert compared > 100


def test_no_panel_is_empty(answers: list[Asked]) -> None:
    rows: dict[tuple[str, str], int] = {}
    for one in answers:
        key = one.dashboard, one.panel.title
        rows[key] = rows.get(key, 0) + len(one.answer)
    assert not [key for key, count in rows.items() if count == 0]


def test_ratios_are_ratios_and_counters_only_grow(answers: list[Asked]) -> None:
    for one in answers:
        for cells in one.answer.values():
            for value, cell in zip(one.query.values, cells, strict=True):
                unit = dict(one.panel.units).get(value.label, one.panel.unit)
                if not isinstance(cell, float | int) or value.aggregate == "raw":
                    continue
                assert cell >= 0, one.influxql
                # A share of one core may pass 1; nothing else of that unit may.
                if unit == "percentunit" and value.aggregate != "rate":
                    assert cell <= 1.0 + 1e-9, one.influxql


def test_the_table_in_the_docs_is_what_was_returned(filled: Filled) -> None:
    kept = (ROOT / "docs" / "dashboards.md").read_text("utf-8")
    made = page(filled)
    assert made == kept, "run: python -m tests.grafana.table > docs/dashboards.md"


def test_annotations_show_the_alerts(filled: Filled) -> None:
    for name in DASHBOARDS:
        (annotation,) = shipped(name)["annotations"]["list"]
        query = annotation["query"].replace("$host", ".*").replace("$timeFilter", "time > 0")
        rows = [
            record
            for series in filled.influxdb.query(query, filled.database)
            for record in series.records()
        ]
        assert len([row for row in rows if row["text"] == "Memory is held while idle"]) == 4
        assert annotation["textColumn"] == "text"


def test_variables_offer_the_hosts_and_gpus(filled: Filled) -> None:
    variables = {v["name"]: v for v in shipped("gpu")["templating"]["list"]}
    hosts = filled.influxdb.query(variables["host"]["query"], filled.database)
    assert [row[1] for row in hosts[0].rows] == filled.hosts
    gpus = filled.influxdb.query(
        variables["gpu"]["query"].replace("$host", filled.hosts[0]), filled.database
    )
    assert len(gpus[0].rows) == 8


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_panel_says_what_it_shows(name: str) -> None:
    document = shipped(name)
    panels = [p for p in document["panels"] if p["type"] != "row"]
    assert len({p["id"] for p in document["panels"]}) == len(document["panels"])
    for panel in panels:
        assert panel["title"]
        if panel["type"] == "text":
            assert panel["options"]["content"]
            continue
        assert panel["description"].endswith((".", "ends it.")), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
        assert panel["targets"]
        for target in panel["targets"]:
            assert target["rawQuery"] is True
            assert target["datasource"]["uid"] == "${source}"


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_do_not_overlap(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in shipped(name)["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_links_lead_to_dashboards_that_are_there() -> None:
    uids = {shipped(name)["uid"] for name in DASHBOARDS}
    urls = [
        link["url"]
        for name in DASHBOARDS
        for panel in shipped(name)["panels"]
        for override in panel.get("fieldConfig", {}).get("overrides", [])
        for one in override["properties"]
        if one["id"] == "links"
        for link in one["value"]
    ]
    assert len(urls) > 5
    assert {url.split("/d/")[1].split("?")[0] for url in urls} <= uids


def test_fields_are_declared() -> None:
    texts = {"window_seconds"}
    known = {f.measurement: {*f.fields(), *f.texts, *texts} for f in FAMILIES}
    for dashboard in DASHBOARDS.values():
        for panel, query in queries(dashboard):
            if query.measurement == "event":
                continue
            for value in query.values:
                assert value.field in known[query.measurement], (panel.title, value.field)


def test_state_colours_are_those_of_the_page() -> None:
    from dashboards.states import CAUSES, STATES
    from telemetry.states import Cause, State

    assert set(STATES) == {state.value for state in State}
    assert set(CAUSES) == {cause.value for cause in Cause} - {"communication"}
    palette = (ROOT / "advisor" / "report" / "palette.css").read_text()
    for state in ("busy", "starved", "stuck", "orphan_held", "idle_held"):
        assert f"--{state}:{STATES[state][1]}" in palette


def test_kinds_are_all_used() -> None:
    kinds = {
        panel.kind
        for dashboard in DASHBOARDS.values()
        for _, panels in dashboard.panels
        for panel in panels
    }
    assert kinds == set(Kind)
