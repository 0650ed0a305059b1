"""Runs `meshard schedule`. Bubbles and kept microbatches are those of the schedules' papers, or counted by hand."""
import json
import pathlib
import tempfile

from expectations import Checks

checks = Checks("schedule")


def facts(out):
    """Bubble in percent, and the microbatches that each stage keeps."""
    lines = dict(line.split(None, 1) for line in out.splitlines() if line.split()[0] in ("bubble", "kept"))
    kept = [int(part.strip(" ,")) for part in lines["kept"].split("of")[1].split("microbatches")[0].split(",")]
    return float(lines["bubble"].split("%")[0]), kept


def shows(arguments, bubble, kept):
    code, out, err = checks.run(*arguments, "--no-picture")
    if code != 0:
        checks.check(f"{arguments} succeeds", False, err)
        return
    found, found_kept = facts(out)
    checks.check(f"bubble of {arguments}: {100 * bubble}", abs(found - 100 * bubble) < 0.06, out)
    checks.check(f"kept by {arguments}", kept is None or found_kept == kept, out)


for p, m in [(2, 2), (4, 8), (3, 7), (8, 16)]:
    sizes = ["--stages", str(p), "--microbatches", str(m)]
    waits = (p - 1) / (m + p - 1)
    shows(["gpipe", *sizes], waits, [m] * p)
    shows(["1f1b", *sizes], waits, [min(m, p - s) for s in range(p)])
    if m >= p:
        shows(["zb-h1", *sizes], (p - 1) / (3 * m + p - 1), None)
shows(["1f1b", "--stages", "8", "--chunks", "2", "--microbatches", "8"], 3 / (2 * 8 + 3), None)
# One stage of two takes twice as long: worker 0 works 3 of 12, worker 1 works 6, both for 2 microbatches. The last
# backward pass of stage 0 begins when that of stage 1 has ended: 1 + 2 * 6 + 2 = 15.
shows(["gpipe", "--stages", "2", "--microbatches", "2", "--forward", "1,2"], 1 - (6 + 12) / (2 * 15), [2, 2])
# A single microbatch: nothing overlaps, and each result is 3 under way.
checks.prints(["1f1b", "--stages", "2", "--microbatches", "1", "--send", "3"], "length   12, ", "busiest, works 3\n")
checks.prints(["1f1b", "--stages", "2", "--microbatches", "3"],
              "1F1B: 2 stages, 2 workers, 3 microbatches\n",
              "worker 0 │F0│F1│· │· │B0───│F2│B1───│· │B2───│\nworker 1 │· │F0│B0───│F1│B1───│F2│B2───│· │· │\n")

with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    _, out, _ = checks.run("1f1b", "--stages", "3", "--microbatches", "4", "--actions", "--no-picture")
    (folder / "own").write_text("\n".join(out.splitlines()[4:]))
    shows([str(folder / "own")], 2 / 6, [3, 2, 1])
    checks.refuses([str(folder / "own"), "--stages", "4"], "the file has 3 stages and 4 microbatches")
    (folder / "waits").write_text("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1\n")
    checks.refuses([str(folder / "waits")], "worker 0 waits at 0B0 for 1B0; worker 1 waits at 1F1 for 0F1")
    (folder / "short").write_text("0F0 0F1 0B0\n")
    checks.refuses([str(folder / "short")], "0B1 is missing")
    checks.run("zb-h1", "--stages", "2", "--microbatches", "2", "--svg", str(folder / "a.svg"),
               "--trace", str(folder / "a.json"))
    text = (folder / "a.svg").read_text(encoding="utf-8")
    checks.check("an SVG image of all actions", text.startswith("<svg ") and "weight gradient" in text, text)
    events = [one for one in json.loads((folder / "a.json").read_text())["traceEvents"] if one["ph"] == "X"]
    # 2 stages, 2 microbatches, 3 kinds of work, and 2 updates.
    checks.check("a trace of all actions", len(events) == 14, str(events))
    longest = max(one["ts"] + one["dur"] for one in events)
    checks.check("in milliseconds", longest == 7000, str(longest))

checks.refuses(["1f2b", "--stages", "2", "--microbatches", "2"], "1f2b is neither 1f1b, gpipe or zb-h1, nor a file")
checks.refuses(["1f1b", "--stages", "2"], "needs --stages and --microbatches")
checks.refuses(["1f1b", "--stages", "5", "--chunks", "2", "--microbatches", "4"], "5 stages", "2 chunks")
checks.refuses(["gpipe", "--stages", "4", "--chunks", "2", "--microbatches", "4"], "only 1f1b has --chunks")
checks.refuses(["1f1b", "--stages", "2", "--microbatches", "2", "--forward", "1,2,3"], "--forward has 3 times for 2 stages")
checks.refuses(["1f1b", "--stages", "2", "--microbatches", "2", "--forward=-1"], "forward takes -1")
checks.refuses(["1f1b", "--stages", "2", "--microbatches", "2", "--backward", "2", "--weight-gradient", "1"],
               "give it or them")
checks.end()
