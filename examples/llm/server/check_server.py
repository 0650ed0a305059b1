#!/usr/bin/env python3
"""Checks the server over a made-up model: answers, streams, refusals, hostile clients, cancellation and draining.

usage: check_server.py --server PROGRAM [NAME]

Uses sockets only, so that it can send what no HTTP client sends. NAME selects tests whose names contain it.
"""

import argparse
import contextlib
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

CRLF = b"\r\n"


class Server:
    """A server process."""

    def __init__(self, *options):
        self.process = subprocess.Popen([PROGRAM, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the server did not start: {self.process.stderr.read().decode()}")
        self.port = int(line)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def metric(self, name):
        text = request(self, "GET", "/metrics")[2].decode()
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
        assert found, f"no {name} in {text}"
        return float(found[1])

    def wait_for(self, name, value):
        for _ in range(200):
            if self.metric(name) == value:
                return
            time.sleep(0.05)
        raise AssertionError(f"{name} is {self.metric(name)}, not {value}")


def head(method, path, length=None, **headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: here"]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + 2 * CRLF


class Answer:
    """Reads one answer from a connection."""

    def __init__(self, connection):
        self.file = connection.makefile("rb")

    def read_head(self):
        line = self.file.readline()
        if not line:
            raise ConnectionError("no answer")
        status = int(line.split()[1])
        headers = {}
        while (line := self.file.readline()) not in (CRLF, b""):
            name, value = line.decode().split(":", 1)
            headers[name.lower()] = value.strip()
        return status, headers

    def chunks(self):
        while size := int(self.file.readline(), 16):
            yield self.file.read(size)
            self.file.readline()
        self.file.readline()

    def read(self):
        status, headers = self.read_head()
        if headers.get("transfer-encoding") == "chunked":
            return status, headers, b"".join(self.chunks())
        return status, headers, self.file.read(int(headers["content-length"]))


def request(server, method, path, body=None, connection=None, **headers):
    with contextlib.ExitStack() as stack:
        if connection is None:
            connection = stack.enter_context(server.connect())
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.sendall(head(method, path, len(data), **headers) + data)
        return Answer(connection).read()


def complete(server, path="/v1/completions", status=200, **body):
    got, _, data = request(server, "POST", path, body)
    assert got == status, (got, data)
    return json.loads(data)


def refused(server, path="/v1/completions", status=400, **body):
    return complete(server, path, status, **body)["error"]["message"]


def events(data):
    parts = [part[6:] for part in data.decode().split("\n\n") if part]
    assert parts[-1] == "[DONE]", parts
    return [json.loads(part) for part in parts[:-1]]


def test_answers_and_streams(server):
    body = {"model": "fake", "prompt": "Hello", "max_tokens": 20, "temperature": 0}
    whole = complete(server, **body)
    text = whole["choices"][0]["text"]
    assert whole["usage"]["prompt_tokens"] == 5 and whole["usage"]["completion_tokens"] == 20, whole
    assert whole["choices"][0]["finish_reason"] == "length", whole
    status, headers, data = request(
        server, "POST", "/v1/completions", {**body, "stream": True, "stream_options": {"include_usage": True}}
    )
    assert status == 200 and headers["content-type"] == "text/event-stream", headers
    parts = events(data)
    assert "".join(part["choices"][0]["text"] for part in parts[:-1]) == text
    assert parts[-1]["choices"] == [] and parts[-1]["usage"]["completion_tokens"] == 20, parts[-1]
    several = complete(server, **{**body, "prompt": ["Hello", [72, 101, 108, 108, 111]], "n": 2})
    assert [choice["text"] for choice in several["choices"]] == 4 * [text]
    stop = text[5:7]
    assert complete(server, **body, stop=[stop])["choices"][0]["text"] == text[: text.index(stop)]
    seeded = [complete(server, **{**body, "temperature": 1, "seed": seed})["choices"][0]["text"] for seed in (1, 1, 2)]
    assert seeded[0] == seeded[1] != seeded[2], seeded


def test_chat(server):
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_completion_tokens": 9, "temperature": 0}
    whole = complete(server, "/v1/chat/completions", **body)
    message = whole["choices"][0]["message"]
    assert message["role"] == "assistant" and whole["usage"]["prompt_tokens"] == 5, whole  # <s><user>Hi<assistant>
    raw = complete(server, prompt="<s><user>Hi<assistant>", max_tokens=9, temperature=0)
    assert message["content"] == raw["choices"][0]["text"]
    _, _, data = request(server, "POST", "/v1/chat/completions", {**body, "stream": True})
    deltas = [part["choices"][0]["delta"] for part in events(data)]
    assert deltas[0]["role"] == "assistant" and "".join(d["content"] for d in deltas) == message["content"], deltas
    parts = [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]
    again = complete(server, "/v1/chat/completions", **{**body, "messages": [{"role": "user", "content": parts}]})
    assert again["choices"][0]["message"]["content"] == message["content"]
    assert "the role" in refused(server, "/v1/chat/completions", messages=[{"role": "judge", "content": "x"}])


def test_logprobs(server):
    whole = complete(server, prompt="abc", max_tokens=5, temperature=0, logprobs=3)["choices"][0]["logprobs"]
    assert len(whole["tokens"]) == len(whole["token_logprobs"]) == 5
    for token, logprob, top in zip(whole["tokens"], whole["token_logprobs"], whole["top_logprobs"]):
        assert logprob == max(top.values()) < 0, (token, top)
    chat = complete(
        server,
        "/v1/chat/completions",
        messages=[{"role": "user", "content": "Hi"}],
        max_tokens=3,
        temperature=0,
        logprobs=True,
        top_logprobs=2,
    )["choices"][0]["logprobs"]["content"]
    assert len(chat) == 3 and all(entry["top_logprobs"][0]["logprob"] == entry["logprob"] for entry in chat), chat


def test_refuses_what_it_cannot_do(server):
    for field, value, words in [
        ("response_format", {"type": "json_object"}, "constrained to JSON"),
        ("tools", [{}], "not supported"),
        ("best_of", 2, "only 1"),
        ("echo", True, "not part"),
        ("temperature", -1, "from 0"),
        ("top_p", "x", 'top_p is "x"'),
        ("top_k", 1.5, "integer"),
        ("stop", [""], "stop has"),
        ("max_tokens", 601, "from 1 to 600"),
        ("max_tokens", 600, "together they may be 600"),
        ("guided", 1, '"guided" is not supported'),
        ("n", 17, "from 1 to 16"),
        ("logit_bias", {"260": 1}, "tokens 0 to 259"),
        ("stream", "yes", "true or false"),
        ("prompt", [], "0 prompts"),
        ("prompt", [260], "the token 260"),
        ("prompt", {"a": 1}, "must be a text"),
        ("prompt", "", "the prompt is empty"),
        ("logprobs", 21, "from 0 to 20"),
    ]:
        message = refused(server, **{"prompt": "x", field: value})
        assert words in message, (field, message)
    assert "this server has" in refused(server, status=404, prompt="x", model="other")
    for body in b"", b"{", b"[]", b"\xff\xfe", b'{"prompt": "\xff"}', b"[" * 100000, b'{"a":' * 50 + b"1" + b"}" * 50:
        status, _, data = request(server, "POST", "/v1/completions", body)
        assert status == 400, (body[:20], data)
    assert request(server, "GET", "/nowhere")[0] == 404
    assert request(server, "GET", "/v1/completions")[0] == 405
    assert json.loads(request(server, "GET", "/v1/models")[2])["data"][0]["id"] == "fake"


def test_malformed_and_huge_requests(server):
    cases = [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nA" + b"a" * 20000, 431),
        (head("POST", "/v1/completions", 1 << 40), 413),
        (head("POST", "/v1/completions", -5), 400),
        (head("POST", "/v1/completions", **{"Transfer-Encoding": "chunked"}) + b"zz\r\n", 400),
        (head("POST", "/v1/completions", **{"Transfer-Encoding": "chunked"}) + b"200000\r\n" + b" " * 0x200000, 413),
        (bytes(range(256)) * 20, 400),
    ]
    for data, status in cases:
        with server.connect() as connection:
            with contextlib.suppress(ConnectionError):
                connection.sendall(data)
            got = Answer(connection).read()
            assert got[0] == status, (data[:60], got)
            assert "error" in json.loads(got[2]), got
    body = json.dumps({"prompt": "x", "max_tokens": 1}).encode()
    with server.connect() as connection:  # two requests at once, in pieces
        data = 2 * (head("POST", "/v1/completions", len(body)) + body)
        for i in range(0, len(data), 37):
            connection.sendall(data[i : i + 37])
        answer = Answer(connection)
        assert answer.read()[0] == 200 and answer.read()[0] == 200
    with server.connect() as connection:
        connection.sendall(head("POST", "/v1/completions", len(body), Expect="100-continue"))
        assert connection.recv(100).startswith(b"HTTP/1.1 100")
        connection.sendall(body)
        assert Answer(connection).read()[0] == 200
    with server.connect() as connection:
        connection.sendall(head("GET", "/health").replace(b"1.1", b"1.0"))
        assert b"ok" in connection.makefile("rb").read()  # closed after the answer


def test_token():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "token"
        path.write_text("secret\n")
        with Server("--token-file", str(path)) as server:
            for header in (
                {},
                {"Authorization": "Bearer wrong"},
                {"Authorization": "Bearer secrets"},
                {"Authorization": "secret"},
            ):
                assert request(server, "GET", "/v1/models", **header)[0] == 401
            assert request(server, "GET", "/v1/models", Authorization="Bearer secret")[0] == 200
            assert request(server, "GET", "/health")[0] == 200
            with server.connect() as connection:  # before the body
                connection.sendall(head("POST", "/v1/completions", 1000))
                assert Answer(connection).read()[0] == 401


def test_slow_clients_and_many_connections():
    with Server("--header-seconds", "1", "--body-seconds", "1", "--connections", "60") as server:
        slow = [server.connect() for _ in range(40)]
        for i, connection in enumerate(slow):
            connection.sendall(
                b"POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\n" + (b"\r\n{" if i % 2 else b"")
            )
        assert complete(server, prompt="x", max_tokens=2)["usage"]["completion_tokens"] == 2
        more = [server.connect() for _ in range(300)]
        refusals = 0
        for connection in more[100:]:
            connection.settimeout(5)
            with contextlib.suppress(ConnectionError):
                refusals += connection.recv(1000).startswith(b"HTTP/1.1 503")
        assert refusals > 150, refusals
        for connection in slow:
            assert Answer(connection).read()[0] == 408
        for connection in slow + more:
            connection.close()
        for _ in range(100):
            with contextlib.suppress(ConnectionError, ValueError):
                if request(server, "GET", "/health")[0] == 200:
                    break
            time.sleep(0.05)
        else:
            raise AssertionError("the server did not recover")


def test_cancels_for_clients_that_go():
    with Server("--step-microseconds", "5000") as server:
        for stream in False, True:
            with server.connect() as connection:
                data = json.dumps(
                    {"prompt": "x", "max_tokens": 500, "stream": stream, "n": 3, "ignore_eos": True}
                ).encode()
                connection.sendall(head("POST", "/v1/completions", len(data)) + data)
                server.wait_for("llm_running_sequences", 3)
            server.wait_for("llm_running_sequences", 0)
            server.wait_for("llm_pages_used", 0)
            server.wait_for("llm_open_requests", 0)
        assert server.metric("llm_answer_tokens_total") < 1500
        assert server.metric("llm_disconnected_total") == 2


def test_queue_and_time_limit():
    with Server("--step-microseconds", "20000", "--queue", "4", "--request-seconds", "0.8") as server:
        data = json.dumps({"prompt": "x", "max_tokens": 500, "ignore_eos": True}).encode()
        connections = [server.connect() for _ in range(26)]
        for connection in connections:
            connection.sendall(head("POST", "/v1/completions", len(data)) + data)
        statuses = [Answer(connection).read()[0] for connection in connections]
        assert set(statuses) == {429, 504} and statuses.count(504) >= 4, statuses
        for connection in connections:
            connection.close()
        body = json.loads(data) | {"stream": True}
        _, _, streamed = request(server, "POST", "/v1/completions", body)
        assert b"time limit" in streamed and b"[DONE]" not in streamed, streamed[-200:]
        server.wait_for("llm_pages_used", 0)


def test_interleaved_equal_alone(server):
    """Greedy answers of many clients at once, of which some go, equal those made one by one."""
    bodies = [
        {"prompt": "Once upon a time, " + "abc" * (i % 9) + str(i), "max_tokens": 10 + 7 * (i % 8), "temperature": 0}
        for i in range(64)
    ]
    alone = [complete(server, **body)["choices"][0]["text"] for body in bodies]
    with Server("--speculative", "6", "--step-microseconds", "300") as other:
        connections = []
        for i, body in enumerate(bodies):
            connection = other.connect()
            data = json.dumps({**body, "stream": i % 3 == 0}).encode()
            connection.sendall(head("POST", "/v1/completions", len(data)) + data)
            connections.append(connection)
            if i % 10 == 4:
                connection.close()
        for i, connection in enumerate(connections):
            if i % 10 == 4:
                continue
            status, _, data = Answer(connection).read()
            assert status == 200, data
            if i % 3 == 0:
                text = "".join(part["choices"][0]["text"] for part in events(data))
            else:
                text = json.loads(data)["choices"][0]["text"]
            assert text == alone[i], (i, text, alone[i])
            connection.close()
        other.wait_for("llm_pages_used", 0)
        assert other.metric("llm_accepted_tokens_total") > 0
        assert other.metric("llm_reused_prompt_tokens_total") > 0


def test_drains():
    # As in a job in the background: with SIGINT and SIGTERM ignored and blocked.
    def prepare():
        for number in signal.SIGINT, signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])

    for number in signal.SIGTERM, signal.SIGINT:
        process = subprocess.Popen([PROGRAM, "--step-microseconds", "3000"], stdout=subprocess.PIPE, preexec_fn=prepare)
        port = int(process.stdout.readline())
        with (
            socket.create_connection(("127.0.0.1", port), timeout=20) as connection,
            socket.create_connection(("127.0.0.1", port), timeout=20) as idle,
        ):
            data = json.dumps(
                {
                    "prompt": "x",
                    "max_tokens": 200,
                    "stream": True,
                    "ignore_eos": True,
                    "stream_options": {"include_usage": True},
                }
            ).encode()
            connection.sendall(head("POST", "/v1/completions", len(data)) + data)
            answer = Answer(connection)
            status, _ = answer.read_head()
            parts = answer.chunks()
            received = next(parts)
            process.send_signal(number)
            assert idle.recv(10) == b""  # closed
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
                raise AssertionError("it still takes connections")
            except ConnectionError:
                pass
            received += b"".join(parts)
            assert events(received)[-1]["usage"]["completion_tokens"] == 200, received[-300:]
        assert process.wait(10) == 0
        process.stdout.close()


def main():
    global PROGRAM
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("name", nargs="?", default="")
    options = parser.parse_args()
    PROGRAM = options.server
    passed = failed = 0
    with Server() as server:
        for name, test in list(globals().items()):
            if not name.startswith("test_") or options.name not in name:
                continue
            try:
                test(*([server] if test.__code__.co_argcount else []))
                assert server.process.poll() is None, "the server ended"
                passed += 1
            except Exception:  # every failure is reported
                failed += 1
                print(f"FAILED {name}")
                traceback.print_exc(file=sys.stdout)
        server.wait_for("llm_pages_used", 0)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
