"""The driver of `./dev hardware`: steps that fail, crash and hang, its choice of a plugin, its result and page."""

import contextlib
import io
import json
import os
import pathlib
import stat
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import child  # noqa: E402
import hardware  # noqa: E402
import page  # noqa: E402
import steps  # noqa: E402

PROBE = """#!/bin/sh
case $1 in
  device) echo '{"name":"platform","status":"passed","text":"cuda"}'
          echo '{"name":"device-kind","status":"passed","text":"Fake <GPU>"}'
          echo '{"name":"devices","status":"measured","value":1,"unit":""}' ;;
  transfers) echo '{"name":"client","status":"passed"}'; echo '{"name":"there","status":"passed"}'
             echo '{"name":"and'; kill -SEGV $$ ;;
  memory) echo '{"name":"live","status":"passed"}'; sleep 60 ;;
  host-calls) echo '{"name":"callback","status":"unsupported","text":"only CPUs"}' ;;
  explain) echo '{"name":"roofline","status":"failed","text":"faster than light"}' ;;
  rows) echo '{"name":"call.2","status":"measured","value":2e-6,"unit":"s"}'
        echo '{"name":"training.loss","status":"measured","value":1.5,"unit":""}' ;;
  ffi) echo "the plugin says no"; exit 1 ;;
esac
"""
DOCTOR = """#!/bin/sh
echo "/x/plugin.so"; echo "  platform    cuda, gpu"; echo "  devices     1 x Fake"; echo "  verdict     usable"
"""
DIGITS = """#!/bin/sh
echo "final loss 0.1"; echo "accuracy on the held-out digits: 42.00 %"
"""
CONFORMANCE = """#!/bin/sh
echo "$@" >> "$ARGUMENTS"
echo "FAILED one-1: ours 1, recorded 2"; echo "11 passed, 1 failed"; exit 1
"""


class Driver(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.programs = pathlib.Path(cls.folder.name)
        for name, text in (("meshard-hardware", PROBE), ("meshard", DOCTOR), ("digits", DIGITS),
                           ("meshard-conformance", CONFORMANCE)):
            path = cls.programs / name
            path.write_text(text)
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        digits = cls.programs / "digits.csv"
        digits.write_text("")
        environment = {"PATH": os.environ["PATH"], "ARGUMENTS": str(cls.programs / "arguments")}
        cls.context = steps.Context(cls.programs, environment, "/x/plugin.so", digits=str(digits))
        limits = {"memory": 1.0}
        cls.said = []
        cls.results = steps.run_all(cls.context, say=cls.said.append,
                                    steps=[(*step[:3], limits.get(step[0], 5)) for step in steps.STEPS])
        cls.by_name = {each["step"]: each for each in cls.results}

    def test_every_step_is_reported_in_order(self):
        self.assertEqual([each["step"] for each in self.results],
                         ["doctor", "digits", "conformance", "transfers", "memory", "host-calls", "explain", "rows",
                          "ffi"])
        self.assertEqual({name: each["status"] for name, each in self.by_name.items()},
                         {"doctor": "passed", "digits": "failed", "conformance": "failed", "transfers": "crashed",
                          "memory": "timed out", "host-calls": "unsupported", "explain": "failed", "rows": "passed",
                          "ffi": "failed"})

    def test_what_was_found_before_the_end_is_kept(self):
        for step, check in (("transfers", "there"), ("memory", "live")):
            self.assertEqual([each["name"] for each in self.by_name[step]["checks"]], [check])
        self.assertEqual(self.by_name["transfers"]["code"], -11)
        self.assertLess(self.by_name["memory"]["seconds"], 20)  # it would sleep for 60
        self.assertIn("the plugin says no", self.by_name["ffi"]["output"])
        self.assertIn("42", json.dumps(self.by_name["digits"]["checks"]))

    def test_the_platform_decides_the_cases_and_their_tolerances(self):
        with tempfile.TemporaryDirectory() as folder:
            one, two = {"id": "a"}, {"id": "b", "mesh": {}}
            (pathlib.Path(folder) / "calls_contractions.json").write_text(json.dumps({"meta": 1, "cases": [one, two]}))
            for platform, count in (("cpu", 2), ("cuda", 1)):
                context = steps.Context(self.programs, {}, "")
                context.calls, context.platform = pathlib.Path(folder), platform
                self.assertEqual([len(content["cases"]) for _, content in steps.batches(context)], [count])
        words = (self.programs / "arguments").read_text()
        self.assertIn("--roundings f32=65536", words)  # f32 products have the bits of TF32 on cuda
        self.assertIn("--roundings f16=8", words)

    def test_times_of_jax_are_beside_ours(self):
        script = self.programs / "jax"
        script.write_text("#!/bin/sh\n" + "\n".join(f"echo '{json.dumps(each)}'" for each in (
            {"name": "jax", "status": "passed", "text": "JAX 9"},
            {"name": "call.2", "status": "measured", "value": 4e-6, "unit": "s"},
            {"name": "training.loss", "status": "measured", "value": 2.0, "unit": ""})))
        script.chmod(0o755)
        context = steps.Context(self.programs, self.context.environment, "", jax=str(script))
        result = steps.rows(context, 10)
        self.assertEqual((result["jax"], result["checks"][0]["jax"]), ("JAX 9", 4e-6))
        self.assertEqual(result["status"], "failed", "1.5 is not the loss of JAX")
        self.assertEqual(result["checks"][-1]["name"], "same-loss")

    def test_no_step_begins_after_the_end(self):
        now = [0.0]

        def slow(_, limit):
            now[0] += limit + 1
            return {"status": "passed", "seconds": limit, "checks": []}

        made = steps.run_all(None, minutes=1, say=lambda _: None, clock=lambda: now[0],
                             steps=[("a", "A", slow, 200), ("b", "B", slow, 400), ("c", "C", slow, 100)])
        self.assertEqual([(each["status"], each["seconds"]) for each in made],
                         [("passed", 25), ("passed", 34), ("skipped", 0)])
        self.assertLessEqual(sum(limit for *_, limit in steps.STEPS), 480)

    def test_a_fault_of_the_driver_ends_one_step(self):
        def broken(*_):
            raise KeyError("oops")

        made = steps.run_all(None, say=lambda _: None, steps=[("a", "A", broken, 9), ("b", "B", broken, 9)])
        self.assertEqual([each["status"] for each in made], ["failed", "failed"])

    def test_result_and_page(self):
        result = hardware.result_of(self.context, self.results, 12)
        self.assertEqual((result["platform"], result["passed"]), ("cuda", False))
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            out = pathlib.Path(folder) / "new" / "cuda.json"
            hardware.write(result, out)
            self.assertEqual(json.loads(out.read_text()), result)
            text = out.with_suffix(".html").read_text()
        self.assertIn("meshard on Fake &lt;GPU&gt;", text)
        for step in self.results:
            self.assertIn(f'id="{step["step"]}"', text)
        self.assertNotIn("<script", text)
        self.assertEqual(text.count("<table"), text.count("</table>"))
        guide = (steps.ROOT / "docs" / "guides" / "hardware.md").read_text()

        def keys(value):
            if isinstance(value, list):
                return set().union(*map(keys, value)) if value else set()
            if not isinstance(value, dict):
                return set()
            inner = [each for name, each in value.items() if name not in ("device", "roundings")]
            return set(value).union(*map(keys, inner)) - {"device", "roundings"}

        for name in keys(result) | {"device", "roundings", "jax"}:
            self.assertIn(f"`{name}`", guide, "the guide describes every member")

    def test_numbers(self):
        self.assertEqual(page.text_of(1.25e-3, "s"), "1.25 ms")
        self.assertEqual(page.text_of(3.1e9, "B/s"), "3.1 GB/s")
        self.assertEqual(page.text_of(0, "s"), "0 s")
        self.assertEqual(page.text_of(97.5, "%"), "97.5 %")


class Choice(unittest.TestCase):
    OUTPUT = """/c/fast/libpjrt_cpu.so
  platform    cpu, cpu
  verdict     usable

/c/libtpu-0.0.51/libtpu.so
  problem     no TPU

/c/xla_cuda13/xla_cuda_plugin.so
  platform    cuda, 12
  verdict     usable
/c/xla_cpu_pjrt-0.0.1/xla_cpu_pjrt.so
  platform    cpu, cpu
  verdict     usable

Searched
  found    /c (cache)
"""

    def test_plugins(self):
        found = hardware.plugins_of(self.OUTPUT)
        self.assertEqual([each[1:] for each in found], [("cpu", True), ("", False), ("cuda", True), ("cpu", True)])
        for wanted, path in ((None, "xla_cuda_plugin.so"), ("cpu", "libpjrt_cpu.so"), ("tpu", "libtpu.so"),
                             ("cuda", "xla_cuda_plugin.so"), ("xla-cpu-pjrt", "xla_cpu_pjrt.so")):
            self.assertEqual(pathlib.Path(hardware.choose(wanted, found)).name, path, wanted)
        for wanted in ("rocm", "nothing-like-it", "/no/such/file.so"):
            with self.assertRaises(hardware.CannotRun):
                hardware.choose(wanted, found)
        with self.assertRaises(hardware.CannotRun):
            hardware.choose(None, [])

    def test_platforms_of_files(self):
        for name, platform in (("libtpu.so", "tpu"), ("xla_cuda_plugin.so", "cuda"), ("xla_rocm_plugin.so", "rocm"),
                               ("pjrt_plugin_xpu.so", "oneapi"), ("libpjrt_cpu.so", "cpu"), ("other.so", "")):
            self.assertEqual(hardware.guess_platform("/cpu/" + name), platform)

    def test_paths_of_the_home_folder_are_shortened(self):
        home = os.path.expanduser("~")
        self.assertEqual(hardware.without_home({"a": [f"in {home}/x"]}), {"a": ["in ~/x"]})


class Child(unittest.TestCase):
    def test_descendants_end_with_a_program(self):
        ended = child.run(["/bin/sh", "-c", "sleep 50 & echo $!; sleep 50"], 0.5)
        self.assertEqual(ended.outcome, "timed out")
        state = pathlib.Path(f"/proc/{ended.output.split()[0]}/stat")
        deadline = time.monotonic() + 20
        while state.exists() and state.read_text().split()[2] != "Z" and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertTrue(not state.exists() or state.read_text().split()[2] == "Z")

    def test_a_missing_program_is_a_failure(self):
        self.assertEqual(child.run(["/no/such/program"], 1).outcome, "failed")


if __name__ == "__main__":
    unittest.main()
