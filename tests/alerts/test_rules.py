"""Rules: their own series, and what holds for any series."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.alerts.alerts import Alerts, Seen
from agent.alerts.exemptions import Job
from agent.alerts.rule_test import Outcome, run_series, transitions
from agent.alerts.rulebook import Rule, Rulebook
from agent.cli import main
from agent.errors import ConfigError
from telemetry.state import Note, State, WindowState
from telemetry.window import Key

BOOK = Rulebook.load()
BY_NAME = {rule.name: rule for rule in BOOK.rules}
START = 1_700_000_100
GPU: Key = ("gpu", "GPU-1")


@pytest.mark.parametrize(
    "outcome", list(run_series(BOOK)), ids=lambda o: f"{o.rule.name}: {o.series.name}"
)
def test_the_series_beside_each_rule(outcome: Outcome) -> None:
    assert outcome.found == outcome.series.expect


def test_every_rule_has_a_series_that_raises_it_and_a_source() -> None:
    for rule in BOOK.rules:
        assert any(what == "raise" for s in rule.series for what, _ in s.expect), rule.name
        assert rule.source, rule.name


def test_the_command_fails_where_a_series_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '[[rule]]\nname = "gpu_lost"\nraise_seconds = 600\n[[rule.series]]\nname = "soon"\n'
    (tmp_path / "own.toml").write_text(f'{text}metric = "1*30"\nexpect = ["raise 30s"]\n')
    assert main(["rules", "--test", "--rules", str(tmp_path)]) == 1
    assert "FAIL gpu_lost: soon" in capsys.readouterr().out


# What holds for any series

CELLS = st.one_of(
    st.none(),
    st.floats(-1e12, 1e12, allow_nan=False),
    st.sampled_from([0.0, 1.0]),
    st.builds(
        WindowState,
        st.sampled_from(State),
        st.just(0.9),
        note=st.one_of(st.none(), st.sampled_from(Note)),
    ),
)
SOON = [
    replace(rule, raise_seconds=rule.raise_seconds and 20.0, clear_seconds=30.0, series=())
    for rule in BOOK.rules
]


@given(st.sampled_from(SOON), st.lists(CELLS, max_size=60))
def test_raise_and_clear_alternate(rule: Rule, cells: list[float | WindowState | None]) -> None:
    found = [what for what, _ in transitions(rule, tuple(cells))]
    assert found == ["raise", "clear"] * (len(found) // 2) + ["raise"] * (len(found) % 2)


@given(
    st.lists(st.tuples(st.integers(-400, 400), CELLS), max_size=60),
    st.sets(st.integers(0, 60), max_size=4),
)
def test_they_alternate_whatever_the_clock_does_and_over_restarts(
    steps: list[tuple[int, float | WindowState | None]], restarts: set[int]
) -> None:
    book = Rulebook(tuple(r for r in SOON if r.scope == "gpu" and r.tier == 10))
    alerts, at = Alerts(book, "h"), START
    raised: set[str] = set()
    for i, (jump, cell) in enumerate(steps):
        at += 10 + (jump if abs(jump) > 300 else 0)  # a clock that is set, or a hole
        values = {}
        if isinstance(cell, float):
            values = {r.metric: cell for r in book.rules if r.metric is not None}
        seen = Seen(values, cell if isinstance(cell, WindowState) else None)
        for event in alerts.step(10, at, at + 10, {GPU: seen}):
            assert event.raised != (event.rule in raised), (event.rule, i)
            raised.symmetric_difference_update({event.rule or ""})
        if i in restarts:
            memory = json.loads(json.dumps(alerts.memory()))
            alerts = Alerts(book, "h")
            alerts.restore(memory)
        assert {rule for rule, _ in alerts.raised()} == raised


# One alert a cause


def _run(alerts: Alerts, windows: list[dict[Key, Seen]], tier: int = 10) -> list[tuple[str, bool]]:
    told = []
    for i, seen in enumerate(windows):
        start = START + i * tier
        for event in alerts.step(tier, start, start + tier, seen):
            told.append((event.rule or "", bool(event.raised)))
    return told


def test_a_lost_gpu_silences_its_own_other_alerts_and_no_other_gpu_s() -> None:
    hot = Seen({"throttle_thermal_ratio": 0.5, "lost_ratio": 0.0})
    lost = Seen({"throttle_thermal_ratio": 0.5, "lost_ratio": 1.0})
    other: Key = ("gpu", "GPU-2")
    alerts = Alerts(BOOK, "h")
    both: dict[Key, Seen] = {GPU: hot, other: hot}
    one: dict[Key, Seen] = {GPU: lost, other: hot}
    told = _run(alerts, [both] * 65 + [one] * 30)
    assert told == [
        ("gpu_throttled_thermal", True),
        ("gpu_throttled_thermal", True),
        ("gpu_lost", True),
        ("gpu_throttled_thermal", False),
    ]
    assert alerts.raised() == [("gpu_lost", GPU), ("gpu_throttled_thermal", other)]


def test_a_lost_card_silences_its_instances() -> None:
    rows: dict[Key, Seen] = {
        GPU: Seen({"lost_ratio": 1.0}),
        ("gpu", "GPU-1/1/0"): Seen({"xid_hardware_errors": 1.0}),
        ("gpu", "GPU-10"): Seen({"xid_hardware_errors": 1.0}),
    }
    assert _run(Alerts(BOOK, "h"), [rows] * 10) == [("gpu_xid", True), ("gpu_lost", True)]


def test_what_is_about_to_be_raised_holds_the_others_back() -> None:
    both = Seen({"lost_ratio": 1.0, "ecc_uncorrected_errors": 1.0, "xid_hardware_errors": 1.0})
    assert _run(Alerts(BOOK, "h"), [{GPU: both}] * 10) == [("gpu_lost", True)]


def test_a_subject_that_is_gone_for_a_day_ends_its_alert() -> None:
    full: dict[Key, Seen] = {("mount", "/scratch"): Seen({"used_ratio": 0.97}, label="/scratch")}
    alerts = Alerts(BOOK, "h")
    windows: list[dict[Key, Seen]] = [*([full] * 40), *([{}] * 8700)]
    assert _run(alerts, windows) == [("disk_near_full", True), ("disk_near_full", False)]


def test_a_rule_that_is_switched_off_ends_its_alert() -> None:
    alerts = Alerts(BOOK, "h")
    _run(alerts, [{GPU: Seen({"lost_ratio": 1.0})}] * 5)
    less = Alerts(Rulebook(tuple(r for r in BOOK.rules if r.name != "gpu_lost")), "h")
    less.restore(alerts.memory())
    (event,) = less.step(10, START + 50, START + 60, {})
    assert (event.rule, event.raised, event.gpu_uuid) == ("gpu_lost", False, "GPU-1")


# Words


def test_the_text_says_where_whose_since_when_what_it_cost_and_what_to_do() -> None:
    alerts = Alerts(BOOK, "gpu01")
    job = Job("train.service", "unit", "ana", "training", "torchrun", None, "4711")
    state = WindowState(State.STUCK, 0.85, evidence=("utilization_ratio 1.00 at 80 W",))
    events = []
    for i in range(100):
        seen = Seen({}, state, "GPU 3", {"gpu_model": "H100"}, (job,), 1, 100.0 * 10 * i)
        start = START + 10 * i
        events += alerts.step(10, start, start + 10, {GPU: seen})
    (event,) = events
    assert event.text == (
        "GPU 3 of gpu01 spins without working. Since 2023-11-14 22:15 UTC (15 min)."
        " Whose: train.service of ana (pid 4711, training, torchrun)."
        " Seen: utilization_ratio 1.00 at 80 W. So far 0.25 GPU-hours and 0.02 kWh."
        " Look first at: the job's log on each rank (a rank that died, a collective that waits);"
        " py-spy dump --pid PID shows where it waits."
    )
    assert event.gpu_uuid == "GPU-1"
    assert event.attributes["owner"] == "train.service"
    assert event.attributes["gpu_hours"] == "0.25"


# The user's folder


def _own(folder: Path, text: str) -> Rulebook:
    (folder / "own.toml").write_text(text)
    return Rulebook.load(folder)


def test_a_folder_changes_silences_and_adds_rules(tmp_path: Path) -> None:
    book = _own(
        tmp_path,
        """
        [[rule]]
        name = "gpu_idle_held"
        raise_seconds = 7200
        [[rule]]
        name = "host_idle"
        enabled = false
        [[rule]]
        name = "gpu_hot"
        scope = "gpu"
        metric = "temperature_celsius_max"
        raise_at = 85
        clear_at = 80
        raise_seconds = 60
        clear_seconds = 60
        severity = "info"
        title = "{subject} of {host} is at {value} degrees"
        look = "the fans"
        source = "our data centre"
        """,
    )
    rules = {rule.name: rule for rule in book.rules}
    assert rules["gpu_idle_held"].raise_seconds == 7200
    assert rules["gpu_idle_held"].series == ()  # those that were shipped show other levels
    assert "host_idle" not in rules
    hot = {GPU: Seen({"temperature_celsius_max": 90.0}, label="GPU 0")}
    assert _run(Alerts(book, "h"), [hot] * 7) == [("gpu_hot", True)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[[rule]]\nname = "gpu_lost"\nraise_secs = 1\n',
            "own.toml: gpu_lost: raise_secs: no such",
        ),
        ('[[rule]]\nname = "x"\n', "own.toml: x: scope: is missing"),
        ('[[rule]]\nname = "gpu_lost"\nmetric = "lost"\n', "gpu_lost: metric: no field of gpu"),
        ('[[rule]]\nname = "gpu_lost"\nclear_at = 0.2\n', "gpu_lost: clear_at: expected another"),
        ('[[rule]]\nname = "gpu_lost"\nsuppresses = ["x"]\n', "gpu_lost: suppresses: no rule 'x'"),
        ('[[rule]]\nname = "gpu_lost"\ntitle = "{owner}"\n', "gpu_lost: title: expected only"),
        ('[[rule]]\nname = "disk_near_full"\nsuppresses = ["disk_full"]\n', "silence each other"),
        ('[[rule]]\nname = "gpu_lost"\nseverity = "bad"\n', "gpu_lost: severity: 'bad' is not"),
        ("[[rules]]\n", "own.toml: rules: expected [[rule]] or [[exemption]]"),
        ("[[rule]\n", "own.toml: is no valid TOML"),
        ('[[exemption]]\nrules = ["*"]\n', "own.toml: exemption: reason: is missing"),
        ('[[exemption]]\nrules = ["*"]\nhours = "9-5"\n', "exemption: hours: expected such as"),
        ('[[exemption]]\nrules = ["*"]\ntimezone = "Mars"\n', "no time zone is called 'Mars'"),
    ],
)
def test_what_is_wrong_is_named_by_file_rule_and_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        _own(tmp_path, text)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


# Exemptions

MONDAY_NOON = 1_700_481_600  # 2023-11-20 12:00 UTC


@pytest.mark.parametrize(
    ("where", "exempt"),
    [
        ('hosts = ["gpu*"]', True),
        ('hosts = ["db*"]', False),
        ('units = ["*.service"]', True),
        ('users = ["ana"]', True),
        ('users = ["ben"]', False),
        ('workloads = ["llm_inference", "training"]', True),
        ('workloads = ["llm_inference"]', False),
        ('days = ["mon"]', True),
        ('days = ["sat", "sun"]', False),
        ('hours = "11:00-13:00"', True),
        ('hours = "13:00-11:00"', False),
        ('hours = "13:00-14:00"\ntimezone = "Europe/Madrid"', True),
        ('days = ["sun"]\nhours = "20:00-13:00"', True),  # the night of Sunday
        ("until = 2023-11-20", True),
        ("until = 2023-11-19", False),
        ('hosts = ["gpu*"]\nusers = ["ben"]', False),
    ],
)
def test_exemptions_by_host_unit_user_workload_and_calendar(
    tmp_path: Path, where: str, exempt: bool
) -> None:
    book = _own(tmp_path, f'[[exemption]]\nrules = ["gpu_lost"]\nreason = "x"\n{where}\n')
    job = Job("train.service", "unit", "ana", "training")
    alerts = Alerts(book, "gpu01")
    told = []
    for i in range(6):
        start = MONDAY_NOON + 10 * i
        told += alerts.step(10, start, start + 10, {GPU: Seen({"lost_ratio": 1.0}, jobs=(job,))})
    assert bool(told) is not exempt


def test_an_exemption_that_begins_ends_an_alert(tmp_path: Path) -> None:
    book = _own(tmp_path, '[[exemption]]\nrules = ["gpu_*"]\nreason = "x"\nhours = "12:10-13:00"\n')
    alerts = Alerts(book, "h")
    told = []
    for i in range(100):
        start = MONDAY_NOON + 10 * i
        told += [
            (bool(e.raised), start - MONDAY_NOON)
            for e in alerts.step(10, start, start + 10, {GPU: Seen({"lost_ratio": 1.0})})
        ]
    assert told == [(True, 20), (False, 640)]


def test_a_folder_that_may_not_be_read_is_told_and_one_that_is_absent_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Rulebook.load(tmp_path / "absent").rules == BOOK.rules

    real = os.listdir

    def refuse(path: str) -> list[str]:
        if str(path).endswith("rules.d"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr("agent.alerts.rulebook.os.listdir", refuse)
    with pytest.raises(ConfigError, match=r"rules\.d: cannot be read \(Permission denied\)"):
        Rulebook.load(tmp_path / "rules.d")
