"""The report as mail: what mail programs show, with pictures that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advisor.channels.mail import compose
from advisor.report import files, mail
from advisor.report.language import LANGUAGES, Language
from advisor.service.reports import report_message
from tests.report import staged

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_picture_is_there_with_words_for_it(code: str) -> None:
    report = staged.report(staged.chatbot(), staged.training())
    found = mail.files(report, Language.load(code))
    page = found["mail.html"]
    assert isinstance(page, str)
    shown = re.findall(r'<img src="cid:([\w-]+)" alt="([^"]+)"', page)
    assert {f"{name}.png" for name, _ in shown} == set(found) - {"mail.html"}
    assert len(shown) == 3  # the hours, and the weeks of the two servers with most to do
    for name in set(found) - {"mail.html"}:
        content = found[name]
        assert isinstance(content, bytes)
        assert content.startswith(PNG)
        assert len(content) < 100_000
    assert not re.search(r"<(script|style|svg|link)\b|https?://", page)


def test_names_of_a_machine_are_escaped_and_drawn_as_they_are() -> None:
    hostile = staged.renamed(staged.hostile(), "$\\frac{1}{$ \x1b[2J 服务器 " + staged.HOSTILE)
    page = mail.files(staged.report(hostile, staged.chatbot()), Language.load("en"))["mail.html"]
    assert isinstance(page, str)
    assert "<script" not in page
    assert "onerror=alert(1)>" not in page
    assert "&lt;script&gt;" in page


def test_without_data_it_is_a_page_without_pictures() -> None:
    for report in (staged.report(), staged.report(staged.unseen()), staged.report(staged.no_gpu())):
        assert list(mail.files(report, Language.load("en"))) == ["mail.html"]


def test_the_folder_of_a_report_becomes_one_mail_with_its_pictures(tmp_path: Path) -> None:
    report = staged.report(staged.chatbot())
    files.write(files.rendered(report, ("html", "md", "mail"), ("es",)), tmp_path)
    sent = compose(report_message(tmp_path), "talla@example.org", ("ops@example.org",))
    kinds = [part.get_content_type() for part in sent.walk()]
    assert kinds.count("image/png") == 2
    page = next(p for p in sent.walk() if p.get_content_type() == "text/html")
    body = page.get_payload(decode=True)
    assert isinstance(body, bytes)
    text = body.decode("utf-8")
    ids = {str(part["Content-ID"]).strip("<>") for part in sent.walk() if part["Content-ID"]}
    assert set(re.findall(r'src="cid:([^"]+)"', text)) == ids
    names = [part.get_filename() for part in sent.walk() if part.get_filename()]
    assert "report.html" in names
    assert "mail.html" not in names
