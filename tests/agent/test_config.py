"""The configuration: what is read, what is refused and how, and the default that is printed."""

import dataclasses
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.load import load, parse, read
from agent.config.settings import ServerSettings, Settings, WorkloadSettings, from_json, to_json
from agent.config.text import default_toml
from agent.errors import ConfigError


def names(settings: type) -> set[str]:
    return {field.name for field in dataclasses.fields(settings)}


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        parse(text, "agent.toml")
    assert refused.value.exit_code == 78
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "place", "expectation"),
    [
        ("[store]\npth = 1\n", "agent.toml:2: store.pth: ", "did you mean path?"),
        ("[stroe]\n", "agent.toml:1: stroe: ", "did you mean store?"),
        ("gpu = 3\n", "agent.toml:1: gpu: ", "expected a table"),
        ("store.path = 7\n", "agent.toml:1: store.path: ", "expected a text"),
        ("[agent]\nhost = ''\n", "agent.toml:2: agent.host: ", "expected a text, not empty"),
        ("[gpu]\nenabled = 'yes'\n", "agent.toml:2: gpu.enabled: ", "expected true or false"),
        (
            "[store]\n\nkeep_5m_days = '40'\n",
            "agent.toml:3: store.keep_5m_days: ",
            'expected a number from 1 to 3650, found "40"',
        ),
        (
            "[gpu]\ndeadline_seconds = 0.1\n",
            "agent.toml:2: gpu.deadline_seconds: ",
            "expected a number from 0.5 to 60, found 0.1",
        ),
        (
            "[gpu]\ndeadline_seconds = nan\n",
            "agent.toml:2: gpu.deadline_seconds: ",
            "expected a number",
        ),
        (
            "[influx]\nbatch_lines = 2.5\n",
            "agent.toml:2: influx.batch_lines: ",
            "expected a whole number from 1 to 50000",
        ),
        (
            "[influx]\nurl = 'ftp://x'\n",
            "agent.toml:2: influx.url: ",
            "expected an address such as https://",
        ),
        (
            "[influx]\nurl = 'http://me:secret@x:8086'\n",
            "agent.toml:2: influx.url: ",
            "without user and password",
        ),
        (
            "[server]\npinned_phases = ['training', 'sleeping']\n",
            "agent.toml:2: server.pinned_phases[1]: ",
            "expected one of training, full_finetuning",
        ),
        (
            "[[server.workloads]]\nphase = 'training'\ngpus = [0, -1]\n",
            "agent.toml:3: server.workloads[0].gpus[1]: ",
            "expected a whole number, at least 0, found -1",
        ),
        (
            "[[server.workloads]]\nmodle = 'x'\n",
            "agent.toml:2: server.workloads[0].modle: ",
            "did you mean model?",
        ),
        ("[agent]\nhost = 1979-05-27\nhost = 2\n", "agent.toml: is no valid TOML: ", "line 3"),
    ],
)
def test_a_mistake_is_told_with_file_line_key_and_what_is_expected(
    text: str, place: str, expectation: str
) -> None:
    message = refusal(text)
    assert message.startswith(place)
    assert expectation in message
    assert "secret" not in message


def test_every_mistake_of_a_file_is_told_at_once() -> None:
    message = refusal("[gpu]\nenabled = 1\ndeadline_seconds = 'x'\n[agent]\nhots = 'a'\n")
    assert {line.split(": ")[1] for line in message.splitlines()} == {
        "gpu.enabled",
        "gpu.deadline_seconds",
        "agent.hots",
    }


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    absent = tmp_path / "absent.toml"
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot be read \(No such file"):
        load(str(absent))
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path)
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"[agent]\nhost = '\xff'")
    with pytest.raises(ConfigError, match=r"is no UTF-8 text \(byte 16\)"):
        read(binary)


def test_whole_numbers_do_where_a_number_is_expected() -> None:
    settings = parse("[store]\nkeep_5m_days = 40\n[server]\npower_feed_watts = 10400\n", "f")
    assert settings.store.keep_5m_days == 40.0
    assert settings.server.power_feed_watts == 10400.0


def test_the_printed_default_is_the_default() -> None:
    text = default_toml()
    assert parse(text, "default") == Settings()
    # Every setting is in it, and can be set by removing the #.
    set_all = re.sub(r"(?m)^# ", "", text)
    document = tomllib.loads(set_all)
    parse(set_all, "all set")
    assert set(document["server"]) == names(ServerSettings)
    assert set(document["server"]["workloads"][0]) == names(WorkloadSettings)
    assert set(document) == names(Settings)
    assert document["store"]["keep_10s_hours"] == Settings().store.keep_10s_hours


def test_every_setting_says_what_it_does() -> None:
    lines = default_toml().splitlines()
    for number, line in enumerate(lines):
        if line.startswith("# ") and "=" in line:
            assert lines[number - 1].startswith("## "), line


@given(
    st.builds(
        Settings,
        server=st.builds(
            ServerSettings,
            purpose=st.none() | st.text(min_size=1),
            power_feed_watts=st.none() | st.floats(1, 1e6),
            data_paths=st.lists(st.text(min_size=1)).map(tuple),
            workloads=st.lists(
                st.builds(WorkloadSettings, gpus=st.lists(st.integers(0, 15)).map(tuple))
            ).map(tuple),
        ),
    )
)
def test_the_daemon_gets_the_settings_that_the_launcher_read(settings: Settings) -> None:
    assert from_json(to_json(settings)) == settings
