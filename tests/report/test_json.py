"""The JSON report: English, base units, nothing for what is not known."""

import json
from collections.abc import Iterator
from typing import Any

from advisor.assessment import Assessment
from advisor.report.files import as_json_text
from tests.report import staged


def document(*assessments: Assessment) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(as_json_text(staged.report(*assessments)))
    return found


def test_it_counts_servers_and_adds_up_hours() -> None:
    found = document(staged.chatbot(), staged.training(), staged.gaps())
    servers = found["summary"]["servers"]
    assert (servers["over"], servers["under"], servers["abstain"]) == (1, 1, 1)
    # 8 + 4 + 2 GPUs, a week each.
    assert round(sum(found["summary"]["gpu_hours"].values()), 2) == 14 * 168
    assert found["told"] == {"since": staged.START, "until": staged.START + staged.WEEK}


def test_the_parts_of_a_server_have_the_shapes_of_their_commands() -> None:
    (server,) = document(staged.training())["servers"]
    overall = next(f for f in server["findings"] if f["dimension"] == "overall")
    assert server["verdict"] == overall["verdict"] == "under"
    assert overall["cause"] == "network_storage"
    assert {"metric", "statistic", "value"} <= overall["evidence"][0].keys()
    assert server["hours"][0].keys() == {
        "host",
        "gpu_uuid",
        "hours",
        "causes",
        "lost_hours",
        "coverage_ratio",
        "losses",
    }
    phase = server["phases"][0]
    assert phase["phase"] == "training"
    assert "model" not in phase  # not known, so not there


def test_actions_stand_in_the_order_in_which_they_pay() -> None:
    found = document(staged.training(), staged.chatbot())["actions"]
    assert [a["host"] for a in found[:2]] == ["chat-01", "train-02"]
    assert found[0]["gpu_hours_per_week"] == 672
    assert found[0]["frees"] is True
    assert found[1]["frees"] is False


def test_absence_is_absence() -> None:
    def values(part: Any) -> Iterator[Any]:
        match part:
            case dict():
                for value in part.values():
                    yield from values(value)
            case list():
                for value in part:
                    yield from values(value)
            case _:
                yield part

    found = list(values(document(staged.gaps(), staged.no_gpu(), staged.unseen())))
    assert None not in found
    assert "N/A" not in found


def test_no_server_is_a_document_too() -> None:
    found = document()
    assert found["servers"] == []
    assert "told" not in found
