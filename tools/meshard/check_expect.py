"""Runs `meshard expect` on a handwritten report: a step on two slices with six collectives."""
import pathlib
import subprocess
import sys
import tempfile

from expectations import Checks

checks = Checks("expect")
with tempfile.TemporaryDirectory() as folder:
    report = f"{folder}/report.json"
    subprocess.run([sys.argv[2], report], check=True)

    def ends(arguments, code, *parts):
        found, out, err = checks.run(*arguments)
        checks.check(f"{arguments} ends with {code}", found == code, out + err)
        for part in parts:
            checks.check(f"{arguments}: {part!r}", part in out + err, out + err)

    ends([report, "--fits", "10%"], 0, "ok: fits into 16 GiB")
    ends([report, "--fits"], 0)
    ends([report, "--fits", "90%"], 1, "FAILED: expected the program to fit")
    ends([report, "--collectives", "1 all-reduce over model; others allowed"], 1, 'over "model", found none')
    ends([report, "--collectives", "no collectives"], 1, "expected no collectives, found 6:")
    ends([report, "--no-full-replication", "--above", "1 TiB"], 0, "ok: no full replication above 1 TiB")
    ends([report, "--no-full-replication"], 1, "full rematerialization", "gpt.py:61")

    kept = pathlib.Path(folder, "expectations.txt")
    kept.write_text("# kept beside the program\nfits with 10% spare\nothers allowed\n")
    ends([report, "--from", str(kept)], 0, "ok: fits")
    ends([report, "--from", str(kept), "--fits"], 2, "both specify `fits`")
    _, printed, _ = checks.run("--print", "--from", str(kept))
    kept.write_text(printed)
    ends(["--print", "--from", str(kept)], 0, printed)

    kept.write_text("fits\n\n1 all-reduse\n")
    ends([report, "--from", str(kept)], 2, "line 3", "expected a collective")
    ends([report, "--fits", "101%"], 2, "less than 100%")
    ends([report], 2, "no expectations")
    ends(["--fits"], 2, "no report or module file")
    ends([f"{folder}/nowhere", "--fits"], 2, "cannot read")
checks.end()
