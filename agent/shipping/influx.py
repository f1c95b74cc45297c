"""Writes to InfluxDB: what becomes of lines there, whichever of its write paths is used.

The paths are `influx_v2.py` (influxdb-client) and `influx_v1.py`.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from urllib3.exceptions import HTTPError, NewConnectionError
from urllib3.exceptions import TimeoutError as NoAnswer

from agent.config.settings import InfluxSettings
from agent.shipping.delivery import Accepted, Delivery, Rejected, Retry, Split, Unauthorised
from agent.shipping.influx_path import NotReady, Refused, WritePath
from agent.shipping.line_protocol import event_line, inventory_line, window_lines
from telemetry.event import Event
from telemetry.window import Key, Window

CREDENTIAL = "influx-token"
"""The name of the systemd credential that holds the token."""

_LONGEST_RETRY_AFTER = 3600.0
_GZIP_LEVEL = 6  # to a twentieth; 9 takes twice as long and saves a tenth of that
_DROPPED = re.compile(r"partial write: .* dropped=(\d+)")
_CONFLICT = re.compile(
    r'field type conflict: input field "(?P<field>[^"]+)" on measurement "(?P<measurement>[^"]+)"'
)
_TOO_OLD = re.compile(r"points beyond retention policy")
_BAD_POINT = re.compile(r"field type conflict|partial write|unable to parse", re.IGNORECASE)

_Texts = Mapping[Key, Mapping[str, str]]


class Influx:
    """A destination of the shipper: buckets of one InfluxDB."""

    def __init__(
        self, settings: InfluxSettings, texts: Callable[[Window], _Texts] | None = None
    ) -> None:
        """`texts` gives what is told of a window's rows beside their own texts."""
        if settings.url is None:
            raise ValueError("no url is configured")
        self._settings = settings
        self._url = settings.url
        self._texts = texts
        self._path: WritePath | None = None

    def bucket(self, tier: int) -> str:
        """The bucket of a tier's windows."""
        if tier == 300 and self._settings.bucket_5m is not None:
            return self._settings.bucket_5m
        return self._settings.bucket

    def window(self, window: Window) -> tuple[str, list[bytes]]:
        """A window's bucket and lines."""
        texts = None if self._texts is None else self._texts(window)
        return self.bucket(window.tier), window_lines(window, texts)

    def event(self, event: Event) -> tuple[str, list[bytes]]:
        """An event's bucket and line."""
        return self._settings.bucket, [event_line(event)]

    def inventory(
        self, time: float, host: str, document: Mapping[str, Any]
    ) -> tuple[str, list[bytes]]:
        """An inventory's bucket and line."""
        return self._settings.bucket, [inventory_line(time, host, document)]

    def send(self, bucket: str, lines: Sequence[bytes]) -> Delivery:
        """Writes lines to a bucket. Raises nothing."""
        try:
            if self._path is None:
                self._path = self._connect()
            self._path.write(bucket, gzip.compress(b"\n".join(lines), _GZIP_LEVEL))
        except Refused as error:
            answer = self._answer(error, bucket, lines)
        except NotReady as error:
            answer = Unauthorised(str(error))
        except NewConnectionError as error:
            answer = Retry(f"{self._url} cannot be reached: {_last(str(error))}")
        except NoAnswer:
            answer = Retry(f"{self._url} did not answer in {self._settings.timeout_seconds:g} s")
        except (HTTPError, OSError, ValueError) as error:
            answer = Retry(f"{self._url}: {type(error).__name__}: {_words(str(error))}")
        else:
            return Accepted()
        if isinstance(answer, Unauthorised):
            self.close()  # token and certificates are read anew at the next attempt
        return answer

    def close(self) -> None:
        """Lets go of the connections."""
        path, self._path = self._path, None
        if path is not None:
            path.close()

    def _connect(self) -> WritePath:
        settings = self._settings
        ca_file = settings.ca_file
        if ca_file is not None:
            try:
                ssl.create_default_context(cafile=ca_file)
            except OSError as error:  # ssl.SSLError is one
                raise NotReady(
                    f"{ca_file}: cannot be used as certificates ({error.strerror or error});"
                    " check [influx] ca_file"
                ) from None
        token = read_token(settings, os.environ)
        if settings.api == "v1":
            from agent.shipping.influx_v1 import V1Path

            return V1Path(self._url, settings, token)
        from agent.shipping.influx_v2 import V2Path

        return V2Path(self._url, settings, token)

    def _answer(self, error: Refused, bucket: str, lines: Sequence[bytes]) -> Delivery:
        status, headers = error.status, error.headers
        words = _server_words(error.body)
        match status:
            case 0:
                return Unauthorised(
                    f"{self._url}: its certificate is not trusted ({_last(error.body)});"
                    " name the authority that signed it in [influx] ca_file"
                )
            case 400 | 422:
                return Rejected(words, dropped_lines(words, lines))
            case 401 | 403:
                return Unauthorised(
                    f"{self._url} refuses the token ({status}: {words}); check {self._told_token()}"
                )
            case 404:
                return Unauthorised(
                    f"{self._url} has no bucket {bucket!r} for us (404: {words});"
                    " check [influx] bucket, bucket_5m and org"
                )
            case 413:
                return Split()
            case 408 | 429:
                return Retry(f"{self._url} asks to wait ({status}: {words})", _after(headers))
        if status >= 500:
            if _BAD_POINT.search(words):  # some servers answer 500 to a bad point
                return Rejected(words)
            return Retry(f"{self._url} answers {status}: {words}", _after(headers))
        where = f" to {headers['Location']}" if headers.get("Location") else ""
        return Unauthorised(
            f"{self._url} answers {status}{where}: {words or 'no reason'};"
            " is [influx] url the address of an InfluxDB?"
        )

    def _told_token(self) -> str:
        if self._settings.token_file is not None:
            return f"[influx] token_file ({self._settings.token_file})"
        return f"[influx] token_file or the credential {CREDENTIAL}"


def read_token(settings: InfluxSettings, environment: Mapping[str, str]) -> str:
    """The token, from its file or systemd's credential; empty where neither is configured.

    With a user it is `user:password`, which InfluxDB 1.8 takes in the place of a token:
    https://docs.influxdata.com/influxdb/v1/tools/api/#apiv2write-http-endpoint
    """
    path = _token_path(settings, environment)
    if path is None:
        return ""
    try:
        text = path.read_text("ascii").strip()
    except OSError as error:
        raise NotReady(
            f"{path}: the token cannot be read ({error.strerror}); check [influx] token_file"
        ) from None
    except UnicodeDecodeError:
        text = ""
    if not text or not text.isprintable():
        raise NotReady(f"{path}: holds no token (one line of plain characters is expected)")
    return text if settings.username is None else f"{settings.username}:{text}"


def _token_path(settings: InfluxSettings, environment: Mapping[str, str]) -> Path | None:
    if settings.token_file is not None:
        return Path(settings.token_file)
    folder = environment.get("CREDENTIALS_DIRECTORY")
    if folder and (Path(folder) / CREDENTIAL).exists():
        return Path(folder) / CREDENTIAL
    return None


def dropped_lines(words: str, lines: Sequence[bytes]) -> tuple[bytes, ...] | None:
    """The lines that the server dropped, where its words tell which; it has kept the others.

    InfluxDB says how many points it dropped of a partial write, and why: a field of another type,
    or an age beyond the retention. None where the lines that this fits are not as many. Words:
    tsdb/store and coordinator/points_writer of https://github.com/influxdata/influxdb.
    """
    count = _DROPPED.search(words)
    if count is None:
        return None
    number = int(count[1])
    conflict = _CONFLICT.search(words)
    if conflict is not None:
        field, measurement = (conflict[n].encode() for n in ("field", "measurement"))
        head, mark = measurement + b",", re.compile(b"[ ,]" + re.escape(field) + b"=")
        found = [line for line in lines if line.startswith(head) and mark.search(line)]
    elif _TOO_OLD.search(words):
        found = sorted(lines, key=lambda line: int(line.rpartition(b" ")[2]))[:number]
    else:
        return None
    return tuple(found) if len(found) == number else None


def _server_words(body: str) -> str:
    """What the server said, without the JSON around it."""
    try:
        document = json.loads(body)
    except ValueError:
        return _words(body)
    if isinstance(document, dict):
        body = str(document.get("message") or document.get("error") or body)
    return _words(body)


def _words(text: str) -> str:
    """One line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:297] + "..."


def _last(text: str) -> str:
    """The part of a nested error that says what happened."""
    return _words(text.rsplit(": ", 1)[-1])


def _after(headers: Mapping[str, str]) -> float | None:
    """Retry-After in seconds: given so, or as a date."""
    text = headers.get("Retry-After")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError):
            return None
    return min(max(0.0, seconds), _LONGEST_RETRY_AFTER) if seconds == seconds else None


__all__ = ["CREDENTIAL", "Influx", "dropped_lines", "read_token"]
