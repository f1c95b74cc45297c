"""InfluxDB 1.6.7, as Debian packages it, and an nginx that gives it the write path of version 2.

The version 2 server is not packaged for Debian. What influxdb-client sends to ``/api/v2/write``
ends here in a real InfluxDB storage engine, through a front that maps bucket, retention policy,
precision and token. Reading is InfluxQL: 1.6.7 has no Flux.
"""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.require import need_program
from tests.servers.process import ServerProcess, answers, free_port, on_free_ports

Cell = str | float | int | bool | None

CONFIGURATION = """\
reporting-disabled = true
bind-address = "127.0.0.1:{rpc_port}"

[meta]
  dir = "{folder}/meta"

[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
  index-version = "tsi1"

[monitor]
  store-enabled = false

[http]
  bind-address = "127.0.0.1:{port}"
  log-enabled = false
  auth-enabled = false
"""

# In one process and without daemon: nothing outlives the test, no other user needs the folder.
# 1.6.7 answers 204 to `precision=us` and stores nanoseconds, so `us` is translated to its `u`.
FRONT = """\
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  map $arg_bucket $v1_db {{ "~^(?<db>.+?)(?:/|%2[Ff])" $db; default $arg_bucket; }}
  map $arg_bucket $v1_rp {{ "~(?:/|%2[Ff])(?<rp>.+)$" $rp; default ""; }}
  map $arg_precision $v1_precision {{ "us" "u"; "" "ns"; default $arg_precision; }}
  server {{
    listen 127.0.0.1:{port};
    client_max_body_size 32m;
    location = /api/v2/write {{
      if ($http_authorization != "Token {token}") {{
        return 401 '{{"code":"unauthorized","message":"unauthorized access"}}';
      }}
      proxy_set_header Authorization "";
      proxy_pass {upstream}/write?db=$v1_db&rp=$v1_rp&precision=$v1_precision;
    }}
    location / {{
      proxy_set_header Authorization "";
      proxy_pass {upstream};
    }}
  }}
}}
"""


@dataclass(frozen=True)
class Series:
    """One series of an InfluxQL answer; a row has a cell for each column, absent ones ``None``."""

    name: str
    tags: Mapping[str, str]
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def records(self) -> list[dict[str, Cell]]:
        """The rows as column to value, cells that hold nothing left out."""
        return [
            {name: cell for name, cell in zip(self.columns, row, strict=True) if cell is not None}
            for row in self.rows
        ]


@dataclass(frozen=True)
class InfluxDB:
    """A running InfluxDB 1.6.7. Its data live in ``folder`` and survive ``process.kill()``."""

    url: str
    folder: Path
    process: ServerProcess = field(repr=False)

    @classmethod
    def launch(cls, folder: Path) -> "InfluxDB":
        """A new server on free ports; skips or fails the test where InfluxDB is absent."""
        program = need_program("influxd", "influxdb")

        def start() -> InfluxDB:
            port = free_port()
            configuration = folder / "influxdb.conf"
            text = CONFIGURATION.format(folder=folder, port=port, rpc_port=free_port())
            configuration.write_text(text)
            url = f"http://127.0.0.1:{port}"
            process = ServerProcess(
                [str(program), "run", "-config", str(configuration)],
                folder,
                lambda: answers(f"{url}/ping"),
            )
            process.start()
            return cls(url, folder, process)

        return on_free_ports(start)

    def query(self, influxql: str, database: str = "", epoch: str = "ns") -> list[Series]:
        """The series that ``influxql`` selects, times as integers of ``epoch``.

        Raises `RuntimeError` with the server's words when it refuses the query.
        """
        fields = {"q": influxql, "db": database, "epoch": epoch}
        body = urllib.parse.urlencode(fields).encode()
        try:
            with urllib.request.urlopen(f"{self.url}/query", body, timeout=60) as answer:
                results = json.load(answer)["results"]
        except urllib.error.HTTPError as error:
            with error:
                raise RuntimeError(error.read().decode()) from error
        for result in results:
            if "error" in result:
                raise RuntimeError(result["error"])
        return [
            Series(found["name"], found.get("tags", {}), found["columns"], found.get("values", []))
            for result in results
            for found in result.get("series", [])
        ]

    def count(self, measurement: str, field_name: str, database: str) -> int:
        """How many points of ``measurement`` hold ``field_name``."""
        found = self.query(f'SELECT count("{field_name}") FROM "{measurement}"', database)
        return int(found[0].rows[0][1] or 0) if found else 0


@dataclass(frozen=True)
class V2Front:
    """The version 2 address of ``influxdb``: what influxdb-client is given."""

    url: str
    token: str
    org: str
    influxdb: InfluxDB
    process: ServerProcess = field(repr=False)

    @classmethod
    def launch(cls, folder: Path, influxdb: InfluxDB, token: str = "testtoken") -> "V2Front":
        """A new front on a free port; skips or fails the test where nginx is absent."""
        program = need_program("nginx", "nginx-light", "nginx")

        def start() -> V2Front:
            port = free_port()
            configuration = folder / "nginx.conf"
            configuration.write_text(
                FRONT.format(folder=folder, port=port, token=token, upstream=influxdb.url)
            )
            url = f"http://127.0.0.1:{port}"
            process = ServerProcess(
                [str(program), "-p", str(folder), "-c", str(configuration)],
                folder,
                lambda: answers(f"{url}/ping"),
            )
            process.start()
            return cls(url, token, "talla", influxdb, process)

        return on_free_ports(start)
