"""Real delivery on loopback: mail, a webhook, Alertmanager; down, slow, refusing, cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from advisor.channels import Message, NotDelivered, channel_of
from advisor.service.config import ChannelSettings
from telemetry.event import Severity
from tests.servers.process import free_port
from tests.service.bench import Bench
from tests.service.servers import CUT, REFUSE, SLOW, Received, smtp_server, web_server

Server = Callable[..., AbstractContextManager[Received]]


def mail(port: int, name: str = "mail", **more: Any) -> ChannelSettings:
    to = more.pop("to", ("oncall@example.org",))
    return ChannelSettings(
        name,
        "mail",
        url=f"smtp://127.0.0.1:{port}",
        sender="talla@example.org",
        to=to,
        timeout_seconds=1.0,
        **more,
    )


def webhook(port: int, name: str = "hook", **more: Any) -> ChannelSettings:
    url = f"json://127.0.0.1:{port}/talla"
    return ChannelSettings(name, "apprise", url=url, timeout_seconds=1.0, **more)


def alertmanager(port: int, name: str = "am", **more: Any) -> ChannelSettings:
    url = f"http://127.0.0.1:{port}"
    return ChannelSettings(name, "alertmanager", url=url, timeout_seconds=1.0, **more)


def rules_told(received: Received) -> list[str]:
    """What arrived, one line a transition, whatever the channel."""
    lines: list[str] = []
    for body in received.bodies:
        if isinstance(body, EmailMessage):
            part = body.get_body(("plain",))
            assert part is not None
            text = str(part.get_content())
        elif isinstance(body, dict):
            text = body["message"]
        else:
            text = "\n".join(alert["annotations"]["description"] for alert in body)
        lines += [line for line in text.splitlines() if " of GPU-" in line]
    return lines


KINDS: list[tuple[Server, Callable[..., ChannelSettings]]] = [
    (smtp_server, mail),
    (web_server, webhook),
    (web_server, alertmanager),
]


@pytest.fixture(params=KINDS, ids=["mail", "webhook", "alertmanager"])
def kind(request: pytest.FixtureRequest) -> tuple[Server, Callable[..., ChannelSettings]]:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def benches(tmp_path: Path) -> Iterator[list[Bench]]:
    made: list[Bench] = []
    yield made
    for bench in made:
        bench.close()


@pytest.mark.parametrize("trouble", ["down", SLOW, REFUSE, CUT])
def test_nothing_is_lost_and_nothing_repeated_once_confirmed(
    tmp_path: Path,
    benches: list[Bench],
    kind: tuple[Server, Callable[..., ChannelSettings]],
    trouble: str,
) -> None:
    serve, channel = kind
    port = free_port()
    bench = Bench(tmp_path, channel(port))
    benches.append(bench)
    bench.alert("gpu_stuck")
    if trouble == "down":
        bench.step()
        bench.step(40)
        bench.alert("gpu_lost", gpu="GPU-2")
    with serve(port, [] if trouble == "down" else [trouble, trouble]) as received:
        for i in range(8):
            bench.step(20)
            if i == 1 and trouble != "down":
                bench.alert("gpu_lost", gpu="GPU-2")
            if i == 3:
                bench.restart()  # what was confirmed stays confirmed
    assert rules_told(received) == ["gpu_stuck of GPU-1 began", "gpu_lost of GPU-2 began"] or (
        channel is alertmanager  # it is told again what stands, and knows it by its labels
        and list(dict.fromkeys(rules_told(received)))
        == ["gpu_stuck of GPU-1 began", "gpu_lost of GPU-2 began"]
    )
    if trouble != "down":
        assert received.attempts >= 3


def test_a_dead_channel_blocks_no_other(tmp_path: Path, benches: list[Bench]) -> None:
    with web_server() as received:
        bench = Bench(tmp_path, mail(free_port()), webhook(received.port))
        benches.append(bench)
        for rule in ("gpu_stuck", "gpu_lost", "gpu_xid"):
            bench.alert(rule)
            bench.step()
        assert len(rules_told(received)) == 3
        by_name = {courier.name: courier for courier in bench.service.couriers}
        assert "Connection refused" in (by_name["mail"].trouble or "")
        assert by_name["hook"].trouble is None


def test_what_is_over_is_told_in_order_and_only_to_whom_it_was_told(
    tmp_path: Path, benches: list[Bench]
) -> None:
    with web_server() as received:
        bench = Bench(tmp_path, webhook(received.port))
        benches.append(bench)
        bench.alert("gpu_stuck")
        bench.step()
        bench.alert("gpu_stuck", raised=False)
        bench.alert("gpu_lost", raised=False)  # nobody here was told that it began
        bench.step()
        assert rules_told(received) == ["gpu_stuck of GPU-1 began", "gpu_stuck of GPU-1 is over"]
        titles = [body["title"] for body in received.bodies]
        assert titles == [
            "Talla: gpu_stuck of GPU-1 began",
            "Talla: over: gpu_stuck of GPU-1 is over",
        ]


def test_alerts_that_come_together_are_one_message_within_a_minute(
    tmp_path: Path, benches: list[Bench]
) -> None:
    with web_server() as received:
        bench = Bench(tmp_path, webhook(received.port), group_seconds=45)
        benches.append(bench)
        for gpu in range(8):
            bench.alert("gpu_stuck", gpu=f"GPU-{gpu}")
            bench.step(5)
        bench.step(5)
        assert received.bodies == []
        bench.step(5)
        assert [len(rules_told(received)), len(received.bodies)] == [8, 1]
        assert received.bodies[0]["title"] == "Talla: 8 alerts of gpu01 (critical)"


def test_a_snooze_stops_delivery_and_what_stands_afterwards_is_delivered(
    tmp_path: Path, benches: list[Bench]
) -> None:
    with web_server() as received:
        bench = Bench(tmp_path, webhook(received.port))
        benches.append(bench)
        now = bench.clock.wall()
        bench.service.state.snooze("gpu_stuck", "gpu01", now + 3600, now, "eva")
        bench.alert("gpu_stuck")
        bench.alert("gpu_stuck", host="gpu02", gpu="GPU-2")
        bench.alert("gpu_stuck", gpu="GPU-3")
        bench.step()
        assert rules_told(received) == ["gpu_stuck of GPU-2 began"]
        bench.alert("gpu_stuck", raised=False, gpu="GPU-3")
        bench.step(1800)
        assert len(rules_told(received)) == 1
        bench.step(1800)
        assert rules_told(received)[1:] == ["gpu_stuck of GPU-1 began"]
        bench.alert("gpu_stuck", raised=False)
        bench.step()
        assert rules_told(received)[2:] == ["gpu_stuck of GPU-1 is over"]


def test_owners_get_what_is_theirs_and_channels_choose(
    tmp_path: Path, benches: list[Bench]
) -> None:
    with smtp_server() as received:
        bench = Bench(
            tmp_path,
            mail(received.port, "all", rules=("gpu_lost",)),
            mail(received.port, "owners", to=(), to_owners=True),
            owners={"ana": "ana@example.org", "train.service": "team@example.org"},
        )
        benches.append(bench)
        bench.alert("gpu_stuck", owner="ana, train.service")
        bench.alert("gpu_stuck", owner="ben", gpu="GPU-2")
        bench.alert("gpu_lost", owner="ana", gpu="GPU-3")
        bench.step()
    assert sorted((m["To"], m["Subject"]) for m in received.bodies) == [
        ("ana@example.org", "Talla: 2 alerts of gpu01 (critical)"),
        ("oncall@example.org", "Talla: gpu_lost of GPU-3 began"),
        ("team@example.org", "Talla: gpu_stuck of GPU-1 began"),
    ]


def test_what_is_not_urgent_comes_in_one_digest_a_day(tmp_path: Path, benches: list[Bench]) -> None:
    with web_server() as received:
        bench = Bench(tmp_path, webhook(received.port, digest=True))
        benches.append(bench)
        bench.alert("host_idle", severity=Severity.INFO)
        bench.alert("gpu_xid_program", severity=Severity.INFO, gpu="GPU-2")
        bench.step()
        bench.alert("gpu_xid_program", raised=False, severity=Severity.INFO, gpu="GPU-2")
        bench.step(3600)
        assert received.bodies == []
        bench.step(7 * 3600)
        bench.step(60)
        (digest,) = received.bodies
        assert digest["title"] == "Talla: 2 less urgent alerts of gpu01, 2026-03-01"
        assert "[stands] host_idle of GPU-1 began" in digest["message"]
        assert "[over] gpu_xid_program of GPU-2 is over" in digest["message"]
        bench.restart()
        bench.step(86_400)
        assert len(received.bodies) == 1  # a day without news is no message


def test_a_new_channel_is_told_what_stands_and_nothing_of_the_past(
    tmp_path: Path, benches: list[Bench]
) -> None:
    with web_server() as received:
        bench = Bench(tmp_path)
        benches.append(bench)
        bench.alert("gpu_stuck")
        bench.alert("gpu_stuck", raised=False)
        bench.alert("gpu_lost")
        bench.step()
        bench.close()
        benches.clear()
        later = Bench(tmp_path, webhook(received.port))
        benches.append(later)
        later.step(60)
        later.step(60)
        assert rules_told(received) == ["gpu_lost of GPU-1 began"]


def test_a_mail_is_readable_with_text_html_and_pictures_inline(tmp_path: Path) -> None:
    picture = b"\x89PNG\r\n\x1a\n" + bytes(20)
    page = tmp_path / "report.html"
    page.write_text("<p>all</p>")
    message = Message(
        "Report\nof ñandú",
        "text ñ",
        '<img src="cid:week">',
        images={"week": picture},
        files=(page,),
    )
    with smtp_server() as received:
        channel_of(mail(received.port)).send(message)
    (got,) = received.bodies
    assert got["Subject"] == "Report of ñandú"
    assert got["Auto-Submitted"] == "auto-generated"
    assert got.get_body(("plain",)).get_content().strip() == "text ñ"
    html = got.get_body(("html",))
    assert "cid:week" in html.get_content()
    images = [part for part in got.walk() if part.get_content_type() == "image/png"]
    assert [image["Content-ID"] for image in images] == ["<week>"]
    assert images[0].get_content() == picture
    assert [a.get_filename() for a in got.iter_attachments()] == ["report.html"]


def test_secrets_come_from_files_and_are_not_told(tmp_path: Path) -> None:
    file = tmp_path / "url"
    channel = ChannelSettings("chat", "apprise", url_file=str(file))
    with pytest.raises(NotDelivered, match="cannot be read"):
        channel_of(channel).send(Message("t", "x", "x"))
    file.write_text(f"json://user:hunter2@127.0.0.1:{free_port()}/")
    with pytest.raises(NotDelivered) as error:
        channel_of(channel).send(Message("t", "x", "x"))
    assert "hunter2" not in str(error.value)
    with web_server() as received:
        file.write_text(f"json://user:hunter2@127.0.0.1:{received.port}/")
        channel_of(channel).send(Message("t", "x", "x"))
    assert received.bodies[0]["message"] == "x"
