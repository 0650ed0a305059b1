"""A plugin of pytest: the fixture `expect`, which fails a test when a program communicates more than before.

    def test_step(expect):
        expect(step, "1 all-reduce over model; fits", params, batch)     # what the test says
        expect.baseline(step, params, batch)                             # what a file beside the test says

`pytest --meshard-update` writes the files.
"""

import json
import os
import re

import pytest

VERSION = 2
_updated = pytest.StashKey[list]()
_better = pytest.StashKey[list]()


def pytest_addoption(parser):
    group = parser.getgroup("meshard")
    group.addoption("--meshard-update", action="store_true", help="write the baselines of expect.baseline()")


def pytest_configure(config):
    config.stash[_updated], config.stash[_better] = [], []


def _axes_text(axes):
    return "no mesh axes" if axes is None else " x ".join(axes) or "no axes"


def _repeats(one):
    """How a collective runs, where its number of executions does not say it."""
    words = [] if one.executions_known else ["per iteration of a loop of unknown length"]
    return ", ".join(words + (["if its branch is taken"] if one.conditional else []))


def _key_of(one):
    return one.kind, one.axes, _repeats(one)


def summary(report):
    """What a baseline keeps of a report: the bytes of the collectives by kind, axes and loop, and the memory.

    Instructions are not counted: a compiler combines two collectives into one, and spreads one over several fusions.
    `purposes` says what the bytes are for, to explain a difference.
    """
    groups = {}
    for one in report.logical_collectives:
        axes = None if one.axes is None else list(one.axes)
        group = groups.setdefault(_key_of(one), {"kind": one.kind, "axes": axes, "repeats": _repeats(one), "bytes": 0,
                                                 "purposes": {}, "from": []})
        group["bytes"] += one.total_bytes
        purpose = one.purpose.kind
        group["purposes"][purpose] = group["purposes"].get(purpose, 0) + one.total_bytes
        group["from"] += [place for place in one.places if place not in group["from"]]
    for group in groups.values():
        group["from"].sort()
    memory = report.memory and {part: getattr(report.memory, part)
                                for part in ("arguments", "outputs", "aliased", "temporaries")}
    return {"version": VERSION, "target": report.target.name, "collectives": list(groups.values()), "memory": memory}


def _key(group):
    return group["kind"], None if group["axes"] is None else tuple(group["axes"]), group["repeats"]


def _needed(memory):
    """Without the code, whose size depends on the compiler's choices."""
    return memory["arguments"] + memory["outputs"] - memory["aliased"] + memory["temporaries"]


def compare(before, report, margin=0.0, memory_margin=0.05):
    """(worse, better): texts of what a report has more, and less, than the summary `before`.

    `margin` is the fraction by which the bytes of a kind of collective may grow, `memory_margin` that of the memory.
    """
    worse, better = [], []
    now = summary(report)
    if before["target"] != now["target"]:
        worse.append(f"the baseline is for {before['target']}, and this program for {now['target']}")
        return worse, better
    old = {_key(group): group for group in before["collectives"]}
    new = {_key(group): group for group in now["collectives"]}
    nothing = {"bytes": 0, "purposes": {}, "from": []}
    for key in [*old, *(key for key in new if key not in old)]:
        a, b = old.get(key, nothing), new.get(key, nothing)
        what = f"{key[0]} over {_axes_text(key[1])}" + (f", {key[2]}" if key[2] else "")
        if key not in old or b["bytes"] > a["bytes"] * (1 + margin):
            known = f", expected {a['bytes']} (from {', '.join(a['from']) or 'unknown places'})" if key in old else ""
            worse.append("\n".join([f"{what}: {b['bytes']} bytes{known}:", *_purposes(a, b),
                                    *_new_lines(report, key, a["from"]), *_causes(report, key)]))
        elif b["bytes"] < a["bytes"]:
            better.append(f"{what}: {b['bytes']} bytes, were {a['bytes']}")
    if before["memory"] is not None and now["memory"] is not None:
        were, needed = _needed(before["memory"]), _needed(now["memory"])
        if needed > were * (1 + memory_margin):
            worse.append(f"memory per device without code: {needed} bytes, expected {were}")
        elif needed < were * (1 - memory_margin):
            better.append(f"memory per device without code: {needed} bytes, were {were}")
    return worse, better


def _purposes(before, after):
    """The purposes that need more bytes; nothing if the baseline has no bytes of this kind."""
    changes = {purpose: (before["purposes"].get(purpose, 0), now) for purpose, now in after["purposes"].items()}
    return [f"    {purpose}: {now} bytes, expected {was}" for purpose, (was, now) in changes.items()
            if now > was and before["bytes"] and purpose != "unknown"]


def _new_lines(report, key, known):
    """The collectives from places that the baseline does not have; all of them if there are none."""
    all_of_key = [one for one in report.logical_collectives if _key_of(one) == key]
    new = [one for one in all_of_key if not one.places or not set(one.places) <= set(known)]
    return [f"    {one}" for one in new or all_of_key]


def _causes(report, key):
    names = {name for one in report.logical_collectives if _key_of(one) == key for name in one.instructions}
    causes = dict.fromkeys(r.cause for r in report.reshards if r.instruction in names and r.cause)
    return [f"    because {cause}" for cause in causes]


class Expect:
    """The fixture `expect`. Calls are those of meshard.expect()."""

    def __init__(self, request):
        self._request = request
        self._names = set()

    def __call__(self, what, expectations, *args, **options):
        """Fails unless a program is as expected; see meshard.expect()."""
        __tracebackhide__ = True
        import meshard

        try:
            return meshard.expect(what, expectations, *args, **options)
        except meshard.ExpectationError as error:
            problem = str(error)
        pytest.fail(problem, pytrace=False)  # outside of the except block, so that it is printed once

    def path(self, name=None):
        """The file of a baseline: beside the test's file, in the folder `baselines`."""
        node = self._request.node
        test = re.sub(r"[^\w.=-]+", "-", node.name).strip("-")
        file = "-".join(filter(None, [node.path.stem, test, name])) + ".json"
        return node.path.parent / "baselines" / file

    def baseline(self, what, *args, name=None, margin=0.0, memory_margin=0.05, **options):
        """Fails if a program moves more bytes or needs more memory than its baseline says.

        Bytes are compared by kind of collective and axes, so that a compiler may combine or spread collectives. A kind
        over axes that the baseline does not have fails. `margin` is the fraction by which bytes may grow, and
        `memory_margin` the one for memory, which depends on how the compiler fuses. A test with several baselines gives
        each a `name`. Programs that need less pass, and the end of the run lists them. `pytest --meshard-update` writes
        the baseline.
        """
        __tracebackhide__ = True
        import meshard

        if name in self._names:
            raise ValueError(f"this test has two baselines {name or 'without a name'}: give each its own `name`")
        self._names.add(name)
        report = meshard.explain(what, *args, **options)
        path, config = self.path(name), self._request.config
        if config.getoption("--meshard-update"):
            _write(path, summary(report))
            config.stash[_updated].append(os.path.relpath(path))
            return report
        if not path.is_file():
            pytest.fail(f"there is no baseline {os.path.relpath(path)}: run pytest with --meshard-update to write it"
                        f"\n\n{report}", pytrace=False)
        before = json.loads(path.read_text())
        if before.get("version") != VERSION:
            pytest.fail(f"{os.path.relpath(path)} has version {before.get('version')}, not {VERSION}: run pytest with "
                        "--meshard-update to write it again", pytrace=False)
        worse, better = compare(before, report, margin, memory_margin)
        if worse:
            pytest.fail(f"{report.name} communicates or stores more than {os.path.relpath(path)} says:\n"
                        + "\n".join(worse) + "\nIf this is meant, run pytest with --meshard-update.", pytrace=False)
        config.stash[_better].extend(f"{os.path.relpath(path)}: {text}" for text in better)
        return report


def _write(path, content):
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.replace(path)


@pytest.fixture
def expect(request):
    """Checks compiled programs: `expect(what, "1 all-reduce over model", *args)` and `expect.baseline(what, *args)`."""
    return Expect(request)


def pytest_terminal_summary(terminalreporter, config):
    if updated := config.stash.get(_updated, []):
        terminalreporter.section("meshard baselines")
        terminalreporter.write_line(f"written: {', '.join(updated)}")
    if better := config.stash.get(_better, []):
        terminalreporter.section("meshard baselines")
        for text in better:
            terminalreporter.write_line(f"less than expected (--meshard-update keeps it): {text}")
