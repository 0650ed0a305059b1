"""protocol.py answers requests, keeps its output clean, and survives works that fail."""

import io
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import protocol  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent


def counting(start=0, step=1):
    """A work whose run takes as many seconds as it has run."""
    seconds = [start]

    def run():
        seconds[0] += step
        return seconds[0]

    return {"version": "1.2"}, run


def failing():
    raise ValueError("it does not work\nsecond line")


def fails_later():
    def run():
        raise RuntimeError("")

    return {}, run


WORKS = {"counting": counting, "timed": lambda: ({}, lambda: None), "failing": failing, "fails_later": fails_later}


def answers_to(*requests):
    out = io.StringIO()
    lines = [request if isinstance(request, str) else json.dumps(request) for request in requests]
    protocol.serve(WORKS, lines, out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


class Protocol(unittest.TestCase):
    def test_works_alternate(self):
        self.assertEqual(
            answers_to({"do": "prepare", "work": "counting"}, {"do": "prepare", "work": "counting", "with": {"start": 10, "step": 5}},
                       {"do": "run", "id": 1, "count": 2}, {"do": "run", "id": 2, "count": 1}, {"do": "run", "id": 1, "count": 1},
                       {"do": "drop", "id": 1}, {"do": "run", "id": 1, "count": 1}),
            [{"ok": {"id": 1, "version": "1.2"}}, {"ok": {"id": 2, "version": "1.2"}}, {"ok": {"seconds": [1, 2]}},
             {"ok": {"seconds": [15]}}, {"ok": {"seconds": [3]}}, {"ok": {}}, {"error": "KeyError: 1"}])

    def test_a_run_without_its_own_time_is_timed(self):
        seconds = answers_to({"do": "prepare", "work": "timed"}, {"do": "run", "id": 1, "count": 3})[1]["ok"]["seconds"]
        self.assertEqual(len(seconds), 3)
        self.assertTrue(all(0 <= time < 1 for time in seconds))

    def test_errors_are_answers(self):
        self.assertEqual(
            answers_to("", "{", {"do": "sing"}, {"do": "prepare", "work": "other"}, {"do": "prepare", "work": "failing"},
                       {"do": "prepare", "work": "fails_later"}, {"do": "run", "id": 1, "count": 1})[1:],
            [{"error": "KeyError: 'sing'"}, {"error": "LookupError: no work named other"},
             {"error": "ValueError: it does not work"}, {"ok": {"id": 1}}, {"error": "RuntimeError: "}])

    def test_what_libraries_print_is_not_between_the_answers(self):
        program = ("import os, sys; sys.path.insert(0, sys.argv[1]); import protocol\n"
                   "def noisy():\n  print('to print'); os.system('echo from a child'); return {}, lambda: 1\n"
                   "protocol.serve({'noisy': noisy})\n")
        done = subprocess.run([sys.executable, "-c", program, FOLDER], input='{"do": "prepare", "work": "noisy"}\n',
                              capture_output=True, encoding="utf-8", check=True)
        self.assertEqual(done.stdout, '{"ok": {"id": 1}}\n')
        self.assertIn("from a child", done.stderr)



class Array:
    def __init__(self, number, waits):
        self.number, self.waits = number, waits

    def block_until_ready(self):
        self.waits.append(self.number)


class Repeated(unittest.TestCase):
    def waits_of(self, chained):
        waits = []
        run = protocol.repeated(lambda state: [Array(state[-1].number + 1, waits)], [Array(0, waits)], 3, chained)
        self.assertGreaterEqual(run(), 0)
        run()
        return waits

    def test_waits_after_each_call_or_the_last_one_and_goes_on(self):
        self.assertEqual(self.waits_of(chained=False), [1, 2, 3, 4, 5, 6])
        self.assertEqual(self.waits_of(chained=True), [3, 6])


if __name__ == "__main__":
    unittest.main(verbosity=0)
