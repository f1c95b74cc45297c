"""An engine's stand-in: a process that serves a page which grows with each request."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = """vllm:kv_cache_usage_perc{{model_name="Qwen/Qwen2.5-7B-Instruct"}} 0.25
vllm:num_requests_running{{model_name="Qwen/Qwen2.5-7B-Instruct"}} 4
vllm:num_requests_waiting{{model_name="Qwen/Qwen2.5-7B-Instruct"}} 0
vllm:generation_tokens_total{{model_name="Qwen/Qwen2.5-7B-Instruct"}} {tokens}
vllm:cache_config_info{{block_size="16",num_gpu_blocks="100"}} 1
"""


class Handler(BaseHTTPRequestHandler):
    """Counts its requests."""

    asked = 0

    def do_GET(self) -> None:
        if self.path != "/metrics":
            self.send_error(404)
            return
        Handler.asked += 1
        body = PAGE.format(tokens=1000 * Handler.asked).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Silent."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    other = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler)
    print(other.server_port, flush=True)
    other.serve_forever()
