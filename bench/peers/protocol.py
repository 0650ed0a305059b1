"""The side of a measured project: works are prepared and run on request, so that they alternate with ours.

A request is one line of JSON on standard input, and its answer one line of JSON on standard output:

  {"do": "prepare", "work": NAME, "with": {...}}  makes a work and warms it up. {"ok": {"id": ID, ...facts}}
  {"do": "run", "id": ID, "count": N}             runs it N times. {"ok": {"seconds": [of each run]}}
  {"do": "drop", "id": ID}                        releases it. {"ok": {}}

A request that fails is answered with {"error": "..."}, and the next one is read. The program ends when the input does.

A work is a function `make(**with)` that returns (facts, run): a dictionary, and a function that runs once and returns
the seconds that count, or None, in which case the time of the call counts.
"""

import gc
import json
import os
import sys
import time


def repeated(step, state, calls, chained):
    """A work that calls `state = step(state)` and returns the seconds of one call.

    The last array of the state is waited for after each call, or after the last one if `chained`. Calls of the work go on
    from the state that the one before has left.
    """
    states = [state]

    def run():
        now = states[0]
        begin = time.perf_counter()
        for i in range(calls):
            now = step(now)
            if not chained or i + 1 == calls:
                now[-1].block_until_ready()
        taken = time.perf_counter() - begin
        states[0] = now
        return taken / calls

    return run


class Server:
    """Answers requests with the works of a dictionary, by name."""

    def __init__(self, works):
        self.works, self.prepared, self.next_id = works, {}, 1

    def prepare(self, request):
        make = self.works.get(request["work"])
        if make is None:
            raise LookupError(f"no work named {request['work']}")
        facts, run = make(**request.get("with", {}))
        number, self.next_id = self.next_id, self.next_id + 1
        self.prepared[number] = run
        return {**facts, "id": number}

    def run(self, request):
        run, times = self.prepared[request["id"]], []
        for _ in range(request["count"]):
            begin = time.perf_counter()
            own = run()
            times.append(time.perf_counter() - begin if own is None else own)
        return {"seconds": times}

    def drop(self, request):
        del self.prepared[request["id"]]
        gc.collect()
        return {}

    def answer(self, line):
        """The answer to one line, as a line."""
        try:
            request = json.loads(line)
            action = {"prepare": self.prepare, "run": self.run, "drop": self.drop}[request["do"]]
            return json.dumps({"ok": action(request)})
        except Exception as error:  # whatever the measured project throws becomes the answer
            text = str(error).strip().splitlines()
            return json.dumps({"error": f"{type(error).__name__}: {text[0] if text else ''}"[:500]})


def serve(works, requests=None, answers=None):
    """Answers all requests. What libraries print goes to standard error instead of between the answers."""
    if answers is None:
        answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
    server = Server(works)
    for line in requests or sys.stdin:
        if line.strip():
            answers.write(server.answer(line) + "\n")
            answers.flush()
