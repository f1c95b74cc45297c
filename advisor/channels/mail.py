"""Mail by the standard library: text, HTML, and pictures inline as PNG."""

from __future__ import annotations

import smtplib
import ssl
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from urllib.parse import urlsplit

from advisor.channels.message import Message, NotDelivered, secret
from advisor.service.config import ChannelSettings
from telemetry.event import Severity

_PORTS = {"smtp": 25, "smtps": 465, "smtp+starttls": 587}
_TYPES = {
    ".html": ("text", "html"),
    ".json": ("application", "json"),
    ".md": ("text", "markdown"),
}


class Mail:
    """Messages over SMTP. A recipient that the server refuses fails the whole message."""

    renew_seconds: float | None = None

    def __init__(self, settings: ChannelSettings) -> None:
        self._settings = settings

    def send(self, message: Message) -> None:
        settings = self._settings
        url = urlsplit(settings.url or secret(settings.url_file, "address of the mail server"))
        host, port = url.hostname or "", url.port or _PORTS.get(url.scheme, 25)
        mail = compose(message, settings.sender, settings.to)
        try:
            with self._connect(url.scheme, host, port) as server:
                if settings.username:
                    password = secret(settings.password_file, "password of the mail server")
                    server.login(settings.username, password)
                refused = server.send_message(mail)
        except smtplib.SMTPRecipientsRefused as error:
            raise NotDelivered(f"{host}: {_refusal(error.recipients)}") from None
        except smtplib.SMTPResponseException as error:
            raise NotDelivered(f"{host}: {error.smtp_code} {_words(error.smtp_error)}") from None
        except (smtplib.SMTPException, OSError) as error:
            words = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise NotDelivered(f"{host}:{port}: {words}") from None
        if refused:
            raise NotDelivered(f"{host}: {_refusal(refused)}")

    def _connect(self, scheme: str, host: str, port: int) -> smtplib.SMTP:
        timeout = self._settings.timeout_seconds
        if scheme == "smtp":
            return smtplib.SMTP(host, port, timeout=timeout)
        context = ssl.create_default_context(cafile=self._settings.ca_file or None)
        if scheme == "smtps":
            return smtplib.SMTP_SSL(host, port, timeout=timeout, context=context)
        server = smtplib.SMTP(host, port, timeout=timeout)
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
        return server


def compose(message: Message, sender: str, to: tuple[str, ...]) -> EmailMessage:
    """The mail as it is sent: alternatives of text and HTML, pictures related to the HTML."""
    mail = EmailMessage()
    mail["Subject"] = " ".join(message.title.split())
    mail["From"] = sender
    mail["To"] = ", ".join(to)
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2].strip(" >") or None)
    mail["Auto-Submitted"] = "auto-generated"  # RFC 3834: no absence notices in return
    if message.severity is Severity.CRITICAL:
        mail["X-Priority"] = "1"
    mail.set_content(message.text)
    mail.add_alternative(message.html, subtype="html")
    page = mail.get_payload()[1]  # type: ignore[index]
    assert isinstance(page, EmailMessage)
    for name, picture in message.images.items():
        page.add_related(
            picture, "image", "png", cid=f"<{name}>", filename=f"{name}.png", disposition="inline"
        )
    for path in message.files:
        main, sub = _TYPES.get(path.suffix, ("application", "octet-stream"))
        data = path.read_bytes()
        mail.add_attachment(data, maintype=main, subtype=sub, filename=path.name)
    return mail


def _refusal(refused: dict[str, tuple[int, bytes]]) -> str:
    return "; ".join(f"{who}: {code} {_words(words)}" for who, (code, words) in refused.items())


def _words(raw: bytes | str) -> str:
    text = raw.decode("utf-8", "backslashreplace") if isinstance(raw, bytes) else raw
    return " ".join(text.split())


__all__ = ["Mail", "compose"]
