#!/usr/bin/env python3
"""64 clients of the package openai use the server at once, with random lengths, streams and cancellations.

usage: soak_server.py --server PROGRAM [--seconds N] [--clients N]

Greedy answers must equal those made one by one, nothing may be lost, and the server's memory must stay the same. Needs
the package openai. PROGRAM is llm_fake_server.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import threading
import time

import openai


def memory(process):
    """Resident bytes of a process."""
    return int(pathlib.Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096


class Soak:
    def __init__(self, port, alone):
        self.port, self.alone = port, alone
        self.lock = threading.Lock()
        self.counts = {"whole": 0, "streamed": 0, "cancelled": 0, "busy": 0}
        self.problems = []

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def client(self, seed, end):
        rng = random.Random(seed)
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key="none", max_retries=0, timeout=60)
        while time.monotonic() < end:
            number = rng.randrange(len(self.alone))
            body, expected = self.alone[number]
            try:
                if rng.random() < 0.4:
                    text = client.completions.create(**body).choices[0].text
                    what = "whole"
                else:
                    stop_after = rng.randrange(1, 30) if rng.random() < 0.4 else None
                    text = ""
                    what = "streamed"
                    with client.completions.create(**body, stream=True) as stream:
                        for i, part in enumerate(stream):
                            text += part.choices[0].text
                            if i == stop_after:
                                what = "cancelled"
                                break
                right = expected.startswith(text) if what == "cancelled" else text == expected
                if not right:
                    self.problems.append(f"{body}: {text!r} instead of {expected!r}")
                self.count(what)
            except openai.RateLimitError:
                self.count("busy")
                time.sleep(0.05)
            except Exception as error:  # nothing may be lost
                self.problems.append(f"{body}: {type(error).__name__}: {error}")
        client.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", required=True)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=64)
    options = parser.parse_args()
    rng = random.Random(0)
    server = subprocess.Popen(
        [options.server, "--speculative", "4", "--step-microseconds", "500", "--queue", "40"], stdout=subprocess.PIPE
    )
    try:
        port = int(server.stdout.readline())
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
        assert [model.id for model in client.models.list()] == ["fake"]
        alone = []
        for _ in range(100):
            prompt = "The same beginning, " * rng.randrange(3) + str(rng.random()) * rng.randrange(1, 4)
            body = {"model": "fake", "prompt": prompt, "max_tokens": rng.randrange(1, 120), "temperature": 0}
            alone.append((body, client.completions.create(**body).choices[0].text))
        client.close()
        soak = Soak(port, alone)
        end = time.monotonic() + options.seconds
        threads = [threading.Thread(target=soak.client, args=(seed, end)) for seed in range(options.clients)]
        for thread in threads:
            thread.start()
        time.sleep(options.seconds / 5)
        early = memory(server)
        for thread in threads:
            thread.join()
        late = memory(server)
        server.terminate()
        status = server.wait(60)
    finally:
        server.kill()
        server.wait()
    print(f"{soak.counts}; memory {early / 1e6:.1f} MB after a fifth, {late / 1e6:.1f} MB at the end; status {status}")
    problems = soak.problems
    if late > early * 1.05 + 4e6:
        problems.append("the memory grew")
    if status != 0:
        problems.append(f"the server ended with {status}")
    for problem in problems[:20]:
        print("FAILED", problem)
    print(f"{sum(soak.counts.values())} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
