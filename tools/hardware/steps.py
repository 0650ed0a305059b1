"""The steps of `./dev hardware`: the programs that they run, and what these say."""

import json
import pathlib
import random
import re
import sys
import tempfile
import time

import child

ROOT = pathlib.Path(__file__).resolve().parents[2]
CALLS = ROOT / "tests" / "golden" / "calls"
BATCH = 12  # recorded calls of one process

# Rounding errors that a result may have beside the recorded one, by platform, family of calls and dtype, where it is
# more than meshard-conformance allows. With their default precision, CUDA's f32 products have the 10 bits of TF32 (2^13
# units of f32), TPUs' the 7 bits of bf16 (2^16); ROCm's and oneAPI's are treated like CUDA's. 8 roundings of these.
PRODUCTS = ("contractions", "windows", "networks", "optimizers")
TENSOR_FLOAT = {"f32": 8 * 2**13, "c64": 8 * 2**13}
ROUNDINGS = {platform: {family: TENSOR_FLOAT for family in PRODUCTS} for platform in ("cuda", "rocm", "oneapi")}
ROUNDINGS["tpu"] = {family: {"f32": 8 * 2**16, "c64": 8 * 2**16} for family in PRODUCTS}
# Elementary functions of accelerators have errors of a few more units than those of the CPU plugin.
for _platform, _families in ROUNDINGS.items():
    for _family in ("element_wise", "reductions", "movement", "indexing"):
        _families[_family] = {"f16": 8, "bf16": 8, "f32": 64, "c64": 128, "f64": 64, "c128": 128}


class Context:
    """What the steps need to know: the programs, the environment with the plugin, and what earlier steps found."""

    def __init__(self, programs, environment, plugin, jax=None, digits=None, seed=1):
        self.programs, self.environment, self.plugin = pathlib.Path(programs), environment, plugin
        self.jax, self.digits, self.seed = jax, digits, seed
        self.platform, self.devices = "", 1
        self.calls = CALLS

    def run(self, command, limit, **more):
        program, *arguments = command
        path = program if "/" in str(program) else self.programs / program
        return child.run([path, *arguments], limit, {**self.environment, **more})


def check(name, status, text="", value=None, unit=""):
    """One line of a step's result, as meshard-hardware prints it."""
    made = {"name": name, "status": status}
    if text:
        made["text"] = text
    if value is not None:
        made.update(value=value, unit=unit)
    return made


def lines_of_checks(output):
    """The JSON lines in an output, which may also contain lines of the plugin."""
    checks = []
    for line in output.splitlines():
        if line.startswith('{"name":'):
            try:
                checks.append(json.loads(line))
            except ValueError:
                pass  # cut off by a crash
    return checks


def result_of(ended, checks):
    """A step's result, from how its program ended and what it reported."""
    if ended.outcome != "passed":
        status = ended.outcome
    elif any(each["status"] == "failed" for each in checks):
        status = "failed"
    elif not any(each["status"] in ("passed", "measured") for each in checks):
        status = "unsupported" if checks else "failed"
    else:
        status = "passed"
    result = {"status": status, "seconds": round(ended.seconds, 2), "checks": checks}
    if ended.code:
        result["code"] = ended.code
    if status not in ("passed", "unsupported"):
        result["output"] = child.tail("\n".join(line for line in ended.output.splitlines()
                                                if not line.startswith('{"name":')))
    return result


def probe(step):
    """A step of meshard-hardware."""
    def run(context, limit):
        ended = context.run(["meshard-hardware", step], limit)
        checks = lines_of_checks(ended.output)
        # Lines that say how the program itself ran are no checks of the device.
        inner = [each for each in checks if each["name"] not in ("client", "end") or each["status"] == "failed"]
        return result_of(ended, inner)
    return run


def doctor(context, limit):
    """What `meshard doctor` says about the plugin, and the platform for the steps that follow."""
    ended = context.run(["meshard", "doctor", context.plugin], limit * 0.6)
    checks = []
    for line in ended.output.splitlines():
        found = re.match(r"  (\w[\w ]*\S)  +(\S.*)", line)
        if found:
            bad = found[1] in ("problem", "fix")
            checks.append(check(found[1], "failed" if bad else "passed", found[2]))
    if not any(each["name"] == "verdict" for each in checks):
        checks.append(check("verdict", "failed", "the plugin is not usable"))
    result = result_of(ended, checks)
    device = context.run(["meshard-hardware", "device"], limit * 0.4)
    facts = {each["name"]: each.get("text", each.get("value")) for each in lines_of_checks(device.output)}
    context.platform = facts.get("platform") or context.platform
    context.devices = int(facts.get("devices") or 1)
    result["facts"] = {name: value for name, value in facts.items() if name not in ("client", "end")}
    result["seconds"] = round(ended.seconds + device.seconds, 2)
    if device.outcome != "passed" and result["status"] == "passed":
        result.update(status=device.outcome, output=child.tail(device.output))
    return result


def digits(context, limit):
    """Training of the demo's classifier on one device."""
    if not context.digits or not pathlib.Path(context.digits).is_file():
        return {"status": "skipped", "seconds": 0, "checks": [],
                "output": "no digits.csv: ./dev setup fetches it, and --pack carries it"}
    with tempfile.TemporaryDirectory() as folder:
        ended = context.run(["digits", "--mesh", "1x1", "--data", context.digits, "--out", folder], limit)
    checks = []
    found = re.search(r"accuracy on the held-out digits: ([\d.]+) %", ended.output)
    if found:
        good = float(found[1]) >= 95
        checks.append(check("accuracy", "passed" if good else "failed", "at least 95 %", float(found[1]), "%"))
    loss = re.search(r"final loss ([\d.eE+-]+|nan)", ended.output)
    if loss:
        checks.append(check("final-loss", "measured", value=float(loss[1])))
    return result_of(ended, checks)


def batches(context):
    """Recorded calls in batches, (family, cases): families take turns, in a drawn order. On CPUs all, else those on one
    device."""
    draw = random.Random(context.seed)
    families = {}
    for path in sorted(context.calls.glob("calls_*.json")):
        content = json.loads(path.read_text())
        cases = [case for case in content["cases"] if context.platform == "cpu" or "mesh" not in case]
        draw.shuffle(cases)
        families[path.stem.removeprefix("calls_")] = (content.get("meta"), cases)
    at = 0
    while any(at < len(cases) for _, cases in families.values()):
        for family, (meta, cases) in families.items():
            if cases[at:at + BATCH]:
                yield family, {"meta": meta, "cases": cases[at:at + BATCH]}
        at += BATCH


def conformance(context, limit):
    """Recorded calls of JAX, as many as fit into the time."""
    begin = time.monotonic()
    counts, failures, unfinished, outputs = {}, [], [], []
    for family, content in batches(context):
        left = limit - (time.monotonic() - begin)
        if left < 1:
            break
        roundings = ROUNDINGS.get(context.platform, {}).get(family, {})
        options = [word for dtype, count in roundings.items() for word in ("--roundings", f"{dtype}={count}")]
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / f"calls_{family}.json").write_text(json.dumps(content))
            ended = context.run(["meshard-conformance", "--data", folder, *options], left)
        seen = counts.setdefault(family, {"passed": 0, "failed": 0, "skipped": 0})
        total = re.search(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$", ended.output)
        if total:
            for key, number in zip(("passed", "failed", "skipped"), total.groups()):
                seen[key] += int(number or 0)
            failures += [line.strip()[:400] for line in ended.output.splitlines() if "FAILED" in line]
        elif ended.outcome == "timed out" and left < limit / 2:
            break  # only the time of the step is over
        else:
            unfinished.append(check(family, "failed", f"a batch of {len(content['cases'])} calls {ended.outcome}"))
            outputs.append(child.tail(ended.output))
    checks = [check(family, "failed" if seen["failed"] else "passed",
                    f"{seen['passed']} passed, {seen['failed']} failed, {seen['skipped']} skipped", seen["passed"],
                    "calls")
              for family, seen in counts.items() if sum(seen.values())]
    if sum(seen["passed"] for seen in counts.values()) == 0:
        unfinished.append(check("calls", "failed", "no call was compared"))
    checks += unfinished + [check("call", "failed", line) for line in failures[:50]]
    ended = child.Ended("passed", time.monotonic() - begin, "\n".join(outputs))
    result = result_of(ended, checks)
    result["roundings"] = ROUNDINGS.get(context.platform, {})
    return result


def rows(context, limit):
    """Calls and training steps, beside JAX on the same device if its interpreter is given."""
    result = probe("rows")(context, limit * 0.5)
    if not context.jax:
        result["jax"] = "not compared: no --jax PYTHON, and python3 has no JAX"
        return result
    script = pathlib.Path(__file__).parent / "jax_rows.py"
    left = limit - result["seconds"]
    width = next((int(each["value"]) for each in result["checks"] if each["name"] == "training.width"), 256)
    ended = child.run([context.jax, script, context.platform, context.plugin, width], left, context.environment)
    theirs = {each["name"]: each for each in lines_of_checks(ended.output)}
    result["jax"] = theirs.pop("jax", {}).get("text") or f"{ended.outcome}: {child.tail(ended.output)[-500:]}"
    result["seconds"] = round(result["seconds"] + ended.seconds, 2)
    for each in result["checks"]:
        other = theirs.get(each["name"])
        if other and "value" in each:
            each["jax"] = other["value"]
    result["checks"] += loss_check(result["checks"], context.platform)
    if result["status"] == "passed" and any(each["status"] == "failed" for each in result["checks"]):
        result["status"] = "failed"
    return result


def loss_check(checks, platform):
    """Whether both have the same loss after 20 steps: to 1e-4 on CPUs, to 2e-2 where products have fewer bits."""
    for each in checks:
        if each["name"] == "training.loss" and "jax" in each:
            allowed = 1e-4 if platform == "cpu" else 2e-2
            same = abs(each["value"] - each["jax"]) <= allowed * abs(each["jax"])
            return [check("same-loss", "passed" if same else "failed", f"{each['value']} and {each['jax']}")]
    return []


# In the order in which they run: name, title, function, seconds of 480 that it may take.
STEPS = [
    ("doctor", "Plugin and devices", doctor, 45),
    ("digits", "The demo: a classifier of digits", digits, 60),
    ("conformance", "Recorded calls of JAX", conformance, 130),
    ("transfers", "Transfers and donation", probe("transfers"), 45),
    ("memory", "Memory statistics", probe("memory"), 20),
    ("host-calls", "Calls of the host: printing, callbacks, NaN checks", probe("host-calls"), 25),
    ("explain", "explain() against measured time", probe("explain"), 50),
    ("rows", "Calls and training, beside JAX", rows, 80),
    ("ffi", "Calls through the FFI", probe("ffi"), 20),
]


def run_all(context, minutes=8, only=(), say=print, steps=None, clock=time.monotonic):
    """Runs the steps, one after the other; a later step runs whatever became of those before. Returns their results."""
    steps = STEPS if steps is None else steps
    deadline = clock() + 60 * minutes
    results = []
    for name, title, function, limit in steps:
        if only and name not in only and name != "doctor":
            continue
        left = deadline - clock()
        begin = clock()
        if left < 3:
            result = {"status": "skipped", "seconds": 0, "checks": [], "output": "no time was left"}
        else:
            try:
                result = function(context, min(limit * minutes / 8, left))
            except Exception as error:  # of this program; what a step's program does is in its result
                result = {"status": "failed", "seconds": round(clock() - begin, 2), "checks": [],
                          "output": f"{type(error).__name__}: {error}"}
        results.append({"step": name, "title": title, **result})
        counts = {}
        for each in result["checks"]:
            counts[each["status"]] = counts.get(each["status"], 0) + 1
        say(f"{name:<12} {result['status']:<12} {result['seconds']:>6.1f} s  " +
            ", ".join(f"{number} {status}" for status, number in counts.items()))
        for each in result["checks"]:
            if each["status"] == "failed":
                say(f"    {each['name']}: {each.get('text', '')[:200]}")
        sys.stdout.flush()
    return results
