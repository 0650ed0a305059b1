"""Tests of drawing and recording random calls. Run in the environment of jax.lock; skipped without it."""
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import environment  # noqa: E402

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

try:
    import jax
    import jax.numpy as jnp
    import ml_dtypes
    import numpy as np

    from calls import answer, case, encode, recorded, wrap
    from calls.call import OPERATIONS, Call
    from calls.draw import DTYPES, Draw, name_of
except ImportError:
    jax = None


def f32(*values):
    return np.array(values, np.float32)


def answered(f, inputs, parts, **more):
    """The record of a call of `f`, with ones as cotangents and tangents."""
    call = Call(inputs, f, **more)
    types = answer.result_types(f, inputs)
    cotangents = [np.ones(shape, dtype) for shape, dtype in types]
    tangents = [np.ones(x.shape, x.dtype) for x in inputs]
    answers = answer.Answers(call, cotangents, tangents, parts, np.random.default_rng(1))
    return recorded.recorded(answers, call)


@unittest.skipIf(jax is None, "no JAX: ./dev compare makes its environment")
class RecordCalls(unittest.TestCase):
    def test_a_seed_says_what_is_drawn(self):
        case.load_families()
        for family, op in (("element_wise", "hypot"), ("movement", "index"), ("optimizers", "sgd")):
            first, second = (json.dumps(case.drawn_case(family, op, 7)) for _ in range(2))
            self.assertEqual(first, second)
            self.assertNotEqual(first, json.dumps(case.drawn_case(family, op, 8)))

    def test_every_family_has_operations_and_no_other_is_known(self):
        case.load_families()
        self.assertEqual(set(OPERATIONS), set(case.FAMILIES))
        with self.assertRaises(SystemExit):
            case.load_families(["frequencies"])

    def test_arrays_are_written_exactly(self):
        for name in ("f16", "bf16", "f32", "f64"):
            limits = ml_dtypes.finfo(DTYPES[name])
            x = np.array([0.1, -0.0, 1 / 3, float(limits.max), float(limits.tiny), 1e-3]).astype(DTYPES[name])
            written = encode.array(x)
            self.assertEqual(name, written["d"])
            again = np.array(written["v"], np.float64).astype(DTYPES[name])
            self.assertEqual(x.tobytes(), again.tobytes(), name)
        words = encode.array(f32(math.nan, math.inf, -math.inf, -0.0, 2))
        self.assertEqual(["nan", "inf", "-inf"], words["v"][:3])
        self.assertEqual("-0.0", str(words["v"][3]))
        self.assertEqual([[1, -2]], encode.array(np.array([1 - 2j], np.complex64))["v"])
        self.assertEqual([True, 3], [encode.array(np.array([1], bool))["v"][0], encode.array(np.int8([3]))["v"][0]])

    def test_values_have_their_dtype_and_bounds(self):
        for seed in range(50):
            d = Draw(seed)
            shape, dtype = d.shape(), d.dtype(1, 1, 1, 1)
            x = d.values(shape, dtype)
            self.assertEqual((shape, dtype), (x.shape, name_of(x.dtype)))
            self.assertLessEqual(x.size, 24)
            bounded = d.values((20,), "f32", -1, 2)
            self.assertTrue(np.all((bounded >= -1) & (bounded <= 2)))

    def test_the_condition_is_recorded(self):
        # 1e4 + 1 - 1e4 = 1: changing the operands by 1e-7 changes the result by up to 2e-3.
        out = answered(lambda x: jnp.sum(x), [f32(1e4, 1, -1e4)], ["out"])["out"][0]
        self.assertEqual([1], out["v"])
        self.assertGreater(out["c"][0], 1e3)
        self.assertNotIn("c", answered(jnp.exp, [f32(0, 1)], ["out"])["out"][0])

    def test_a_change_of_the_cotangents_is_part_of_the_condition(self):
        # The derivative of a softmax for equal cotangents is 0 because they are equal.
        vjp = answered(jax.nn.softmax, [f32(0, 1, 2)], ["vjp"])["vjp"][0]
        self.assertGreater(min(vjp["c"]), 1e-3)

    def test_where_the_dtype_ends_both_answers_are_recorded(self):
        # 1e30^2 / 1e30 is 1e30, but the intermediate value is infinite in f32.
        out = answered(lambda x: x * x / x, [f32(1e30, 2)], ["out"])["out"][0]
        self.assertEqual(["inf", 2], out["v"])
        self.assertAlmostEqual(1e30, out["o"]["0"], delta=1e23)

    def test_limits_are_recorded_where_a_derivative_jumps_or_is_no_number(self):
        # On the diagonal, JAX's second derivative of hypot is not that of the function, sqrt(1 / 8)
        # / 1 and its negative. Along (1, 1) these cancel, so only one operand moves.
        f = lambda x: jnp.hypot(x, jax.lax.stop_gradient(x) * 0 + 1)
        hvp = answered(f, [f32(1, 3)], ["hvp"])["hvp"][0]
        self.assertAlmostEqual(math.sqrt(1 / 8), hvp["n"]["0"], places=4)
        self.assertNotIn("1", hvp["n"])
        # b a^(b-1) at a = b = 0: only a moves.
        vjp = answered(lambda a, b: a ** b, [f32(0, 2), f32(0, 3)], ["vjp"])["vjp"][0]
        self.assertEqual({"0": 0}, vjp["n"])
        # |x| and hypot(x, 0) have slopes from -1 to 1 at 0.
        for f in (jnp.abs, lambda x: jnp.hypot(x, jnp.zeros_like(x))):
            vjp = answered(f, [f32(0, 2)], ["vjp"])["vjp"][0]
            self.assertEqual(["0"], list(vjp["k"]))
            np.testing.assert_allclose([-1, 1], vjp["k"]["0"], atol=1e-6)
        self.assertNotIn("k", answered(jnp.sign, [f32(0, 2)], ["out"])["out"][0])
        # A true jump has no limit.
        self.assertNotIn("n", answered(lambda x: jnp.where(x > 1, x * 5, x), [f32(1, 2)], ["vjp"])["vjp"][0])

    def test_wraps_are_what_the_page_says(self):
        x = f32(1, -2, 3)
        call = Call([x], lambda x: x * x)

        class Fixed(Draw):
            def integer(self, low, high):
                return 2

            def chance(self, probability):
                return True

        d = Fixed(0)
        for make in (wrap.repeated, wrap.while_small):
            inputs, f, how = make(d, call)
            once = x * 0.5 + x * x
            np.testing.assert_allclose(once * 0.5 + once * once, f(*inputs))
            self.assertEqual(2, how["count"])
        inputs, f, _ = wrap.switched(d, call)
        np.testing.assert_allclose((-x) * (-x), f(*inputs)[0] if isinstance(f(*inputs), tuple) else f(*inputs))
        inputs, f, _ = wrap.graded(d, call)
        np.testing.assert_allclose(2 * x, f(*inputs)[0])
        inputs, f, how = wrap.scanned(d, call)
        total, ys = f(*inputs)
        expected = 1.0
        for k in (1, 0):  # in reverse order
            expected = expected * 0.5 + np.sum(inputs[0][k] ** 2)
        self.assertTrue(how["reverse"])
        np.testing.assert_allclose(expected, total, rtol=1e-6)
        np.testing.assert_allclose(inputs[0] ** 2, ys)

    def test_files_do_not_depend_on_the_number_of_processes(self):
        texts, cores = [], os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, cores)
        for chosen in ({min(cores)}, cores):
            os.sched_setaffinity(0, chosen)
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([sys.executable, HERE / "record_calls.py", folder, "6", "3", "optimizers"],
                                      capture_output=True, encoding="utf-8", timeout=300)
                self.assertEqual(0, done.returncode, done.stderr)
                self.assertIn("6 cases, 0 calls that JAX refuses", done.stdout)
                texts.append(pathlib.Path(folder, "calls_optimizers.json").read_text(encoding="utf-8"))
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(6, len(json.loads(texts[0])["cases"]))


def main():
    python = environment.existing_interpreter()
    if jax is None and python and not os.environ.get("MESHARD_IN_JAX_ENVIRONMENT"):
        os.execve(python, [python, __file__, *sys.argv[1:]], os.environ | {"MESHARD_IN_JAX_ENVIRONMENT": "1"})
    unittest.main()


if __name__ == "__main__":
    main()
