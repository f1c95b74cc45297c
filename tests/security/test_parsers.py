"""Whatever a file or an answer holds, its reader takes it or refuses it in one line of words."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import config as advisor_config
from advisor.catalogue import config_json
from advisor.errors import AdvisorError
from advisor.influxql import InfluxQL, NoAnswer
from advisor.inventories import read_file
from advisor.service.config import InfluxReading
from agent.alerts.rulebook import Rulebook
from agent.config.load import parse
from agent.config.text import default_toml
from agent.errors import ConfigError
from agent.host.owners import Owner, owner_of_cgroup
from telemetry.simulation import load_scenario
from telemetry.simulation.reader import ScenarioError
from telemetry.simulation.scenario import read_scenario

MANY = int(os.environ.get("TALLA_FUZZ", "40"))
"""Examples of each; `make verify-security` takes 2,000."""

RESOURCES = Path(__file__).parents[2]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(
        ["", "../../etc/passwd", "\x00", "\x1b[31m", "-1", "a" * 5000, "{0.__class__}"]
    )
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128},
    "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
    "torch_dtype": "bfloat16",
}
INVENTORY = {
    "host": "gpu01",
    "cpu": {"model": "x", "sockets": 2, "physical_cores": 64, "threads": 128},
    "memory_bytes": 10**12,
    "gpus": [{"uuid": "GPU-1", "name": "NVIDIA H100 80GB HBM3", "memory_bytes": 8 * 10**10}],
    "mounts": [{"path": "/data", "fstype": "nfs4", "source": "nas:/data"}],
}


def places(document: Any) -> Iterator[tuple[Any, Any]]:
    """Every container with each of its keys or indexes."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in list(items):
        yield document, key
        if isinstance(value, dict | list) and value:
            yield from places(value)


@st.composite
def damaged(draw: st.DrawFn, whole: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """A sound document with up to three values replaced, removed or added."""
    document = copy.deepcopy(whole())
    for _ in range(draw(st.integers(1, 3))):
        found = list(places(document))
        if not found:
            break
        owner, key = draw(st.sampled_from(found))
        how = draw(st.sampled_from(["replace", "remove", "add"]))
        if how == "remove":
            del owner[key]
        elif how == "add" and isinstance(owner, dict):
            owner[draw(st.text(min_size=1, max_size=8))] = draw(JSON)
        else:
            owner[key] = draw(JSON)
    return document


def toml(value: Any) -> str:
    """A value in TOML, where it has one."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value).replace("e+", "e")
    return json.dumps("" if value is None else value)


@contextlib.contextmanager
def file_of(content: str, name: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(content, "utf-8", "surrogatepass")
        yield path


def assert_one_line(error: Exception) -> None:
    assert str(error).strip()
    assert "Traceback" not in str(error)


@settings(max_examples=MANY)
@given(damaged(lambda: LLAMA) | JSON)
def test_a_config_json(document: Any) -> None:
    with file_of(json.dumps(document), "config.json") as path:
        try:
            config_json.load_config(path)
        except config_json.ConfigError as error:
            assert_one_line(error)


def scenario() -> dict[str, Any]:
    path = RESOURCES / "telemetry/simulation/scenarios/training.toml"
    return tomllib.loads(path.read_text("utf-8"))


@settings(max_examples=MANY)
@given(damaged(scenario))
def test_a_scenario(document: dict[str, Any]) -> None:
    document.pop("extends", None)
    try:
        read_scenario(document, "scenario.toml")
    except ScenarioError as error:
        assert_one_line(error)


def test_a_scenario_leads_to_no_other_kind_of_file(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('extends = "/etc/passwd"\n')
    with pytest.raises(ScenarioError):
        load_scenario(tmp_path / "s.toml")


@settings(max_examples=MANY)
@given(damaged(lambda: INVENTORY) | JSON)
def test_an_inventory(document: Any) -> None:
    with file_of(json.dumps(document), "inventory.json") as path:
        try:
            read_file(path, "gpu01")
        except AdvisorError as error:
            assert_one_line(error)


def agent_settings() -> dict[str, Any]:
    lines = (line.removeprefix("# ") for line in default_toml().splitlines())
    return tomllib.loads("\n".join(line for line in lines if not line.startswith("##")))


@settings(max_examples=MANY)
@given(damaged(agent_settings))
def test_the_agents_configuration(document: dict[str, Any]) -> None:
    text = "\n".join(f"{json.dumps(k)} = {toml(v)}" for k, v in document.items())
    try:
        parse(text, "agent.toml")
    except ConfigError as error:
        assert_one_line(error)


@given(st.text(max_size=200))
def test_any_text_as_the_agents_configuration(text: str) -> None:
    with contextlib.suppress(ConfigError):
        parse(text, "agent.toml")


@settings(max_examples=MANY)
@given(damaged(lambda: tomllib.loads(advisor_config.default_text())))
def test_the_advisors_configuration(document: dict[str, Any]) -> None:
    text = "\n".join(f"{json.dumps(k)} = {toml(v)}" for k, v in document.items())
    with file_of(text, "advisor.toml") as path:
        try:
            advisor_config.load(path)
        except AdvisorError as error:
            assert_one_line(error)


def rules() -> dict[str, Any]:
    found = tomllib.loads((RESOURCES / "agent/alerts/rules/host.toml").read_text("utf-8"))
    return {"rule": found["rule"][:2]}


@settings(max_examples=MANY)
@given(damaged(rules))
def test_a_folder_of_rules(document: dict[str, Any]) -> None:
    text = "\n".join(f"{json.dumps(k)} = {toml(v)}" for k, v in document.items())
    with file_of(text, "own.toml") as path:
        try:
            Rulebook.load(path.parent)
        except ConfigError as error:
            assert_one_line(error)


@given(
    st.text(max_size=300)
    | st.lists(
        st.sampled_from(
            ["/", "kubepods", "pod", "slurm", "job_1", "a" * 64, ".service", "\n", "\x00"]
        ),
        max_size=30,
    ).map("".join)
)
def test_a_cgroup_path(text: str) -> None:
    owner = owner_of_cgroup(text)
    assert owner is None or isinstance(owner, Owner)


class Answers(BaseHTTPRequestHandler):
    """Answers each question with the server's `answer`."""

    server: Any

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.server.answer)))
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        pass


@pytest.fixture(scope="module")
def influxdb_of_an_attacker() -> Iterator[Any]:
    server = HTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


SOUND = {"results": [{"series": [{"name": "gpu", "columns": ["time", "a"], "values": [[1, 2]]}]}]}


@settings(max_examples=MANY)
@given(
    st.binary(max_size=60) | (damaged(lambda: SOUND) | JSON).map(lambda d: json.dumps(d).encode())
)
def test_an_influxdb_that_answers_something_else(
    influxdb_of_an_attacker: Any, answer: bytes
) -> None:
    influxdb_of_an_attacker.answer = answer
    port = influxdb_of_an_attacker.server_address[1]
    asked = InfluxQL(InfluxReading(url=f"http://127.0.0.1:{port}"))
    with contextlib.suppress(NoAnswer):
        asked.query("SELECT a FROM gpu")
    asked.close()
