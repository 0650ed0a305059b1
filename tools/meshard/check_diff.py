"""Runs `meshard diff` on two reports that differ in one collective, one sharding and 1 KiB."""
import json
import pathlib
import subprocess
import sys
import tempfile

from expectations import Checks

checks = Checks("diff")
with tempfile.TemporaryDirectory() as folder:
    before, after = f"{folder}/before.json", f"{folder}/after.json"
    subprocess.run([sys.argv[2], before], check=True)
    subprocess.run([sys.argv[2], after, "changed"], check=True)

    def ends(arguments, code, *parts):
        found, out, err = checks.run(*arguments)
        checks.check(f"{arguments} ends with {code}", found == code, out + err)
        for part in parts:
            checks.check(f"{arguments}: {part!r}", part in out + err, out + err)

    ends([before, before], 0, "no difference")
    ends([before, before, "--fail-on-change"], 0, "no difference")
    ends([before, after], 0, "(+1 KiB)", "shardings: 1 changed", "argument 0", "collectives: 6 → 5")
    ends([before, after, "--fail-on-change"], 1)
    page, difference = f"{folder}/diff.html", f"{folder}/diff.json"
    ends([before, after, "--html", page, "--json", difference], 0)
    read = json.loads(pathlib.Path(difference).read_text(encoding="utf-8"))
    checks.check("JSON", read["schema"] == "meshard.diff" and not read["same"] and len(read["placements"]) == 1, read)
    memory = {part["part"]: part["after"] - part["before"] for part in read["memory_bytes"]}
    checks.check("JSON: memory", memory["arguments"] == memory["total"] == 1024 and memory["code"] == 0, memory)
    text = pathlib.Path(page).read_text(encoding="utf-8")
    checks.check("page", "</html>" in text and "http" not in text.replace("http-equiv", ""), text)

    # Limits, and the page for a pull request. The second report has 1 KiB more arguments and one collective less.
    markdown = f"{folder}/page.md"
    ends([before, after, "--fail-on", "memory", "--markdown", markdown], 1, "over the limit: memory", "(+1 KiB")
    text = pathlib.Path(markdown).read_text(encoding="utf-8")
    checks.check("Markdown", text.startswith("### <code>") and "**collectives -1" in text
                 and "Over the limits:\n\n- <code>memory: " in text and "<details>" in text, text)
    ends([before, after, "--markdown", "-"], 0, "### <code>", "| collectives | 6 | 5 | -1 |", "| +1 KiB |")
    ends([before, after, "--fail-on", "memory 400%; bytes; collectives"], 0, "(+1 KiB)")
    ends([before, after, "--fail-on", "bytes", "--fail-on", "shardings"], 1, "over the limit: shardings: 1 changed")
    ends([before, after, "--fail-on", "bytes 5"], 2, "percentage")
    ends([before, after, "--fail-on", "speed"], 2, "limit `speed`")

    ends([before, f"{folder}/nowhere.json"], 2, "cannot read")
    pathlib.Path(after).write_text('{"schema": "something else"}')
    ends([before, after], 2, "this is not a report")
    pathlib.Path(after).write_text("module {}")
    ends([before, after], 2, "--topology")
checks.end()
