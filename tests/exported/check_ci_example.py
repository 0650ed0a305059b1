#!/usr/bin/env python3
"""Runs the commands of examples/ci/explain.yml in a repository with a base and a change.

usage: check_ci_example.py --meshard PROGRAM --example FOLDER

Python's lower_step.py is replaced by one that writes a module without JAX. Installing, and what only GitHub can do, is
left out. Skips, with a message, without the TPU plugin.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap

from check_exported import has_plugin

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

# x is split by "data", w by "model" along the dimension that is summed: an all-reduce.
LOWER = '''
import sys
open(sys.argv[1], "w").write("""
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=4]>
  func.func @main(%x: tensor<64x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
                  %w: tensor<256x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
      -> (tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [RESULT, {}]>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32> loc("step.py":7:3)
    return %0 : tensor<64x128xf32>
  }
}
""")
'''


def commands(text):
    """The shell commands of a workflow, by the name of their step."""
    found = {}
    for step in re.split(r"^      - ", text, flags=re.MULTILINE)[1:]:
        name = re.match(r"name: (.*)", step)
        block = re.search(r"^        run: \|\n((?:          .*\n|\n)+)", step, re.MULTILINE)
        line = re.search(r"^        run: (?!\|)(.*)", step, re.MULTILINE)
        if name and (block or line):
            found[name[1]] = textwrap.dedent(block[1]) if block else line[1]
    return found


def variables(text):
    """The variables that the workflow sets for all steps."""
    block = re.search(r"^env:\n((?:  .*\n)+)", text, re.MULTILINE)[1]
    return dict(re.findall(r"^  (\w+): (.*)$", block, re.MULTILINE))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meshard", type=pathlib.Path, required=True)
    parser.add_argument("--example", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if not has_plugin(arguments.meshard):
        print("SKIPPED: the TPU plugin is not here (meshard fetch tpu)")
        return 0
    workflow = (arguments.example / "explain.yml").read_text(encoding="utf-8")
    steps, failed = commands(workflow), []

    def check(what, holds, shown):
        print(f"{'ok' if holds else 'FAILED'}: {what}")
        if not holds:
            print(textwrap.indent(shown, "  "))
            failed.append(what)

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "bin").mkdir()
        (root / "bin/meshard").symlink_to(arguments.meshard.resolve())
        (root / "bin/python").symlink_to(sys.executable)
        (root / "work/ci").mkdir(parents=True)
        (root / "summary.md").touch()
        environment = {**os.environ, **variables(workflow), "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
                       "GITHUB_STEP_SUMMARY": str(root / "summary.md"), "GIT_CONFIG_GLOBAL": os.devnull,
                       "GIT_CONFIG_NOSYSTEM": "1"}
        for variable in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
            environment.pop(variable, None)

        def shell(script):
            done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=root / "work", env=environment,
                                  capture_output=True, encoding="utf-8", errors="replace")
            return done.returncode, done.stdout + done.stderr

        def commit(result):
            (root / "work/ci/lower_step.py").write_text(LOWER.replace("RESULT", result), encoding="utf-8")
            return shell("git add -A . && git -c user.name=a -c user.email=a@example.com commit -qm step && git rev-parse HEAD")

        shell("git init -q .")
        code, base = commit('{"data"}')
        environment["BASE"] = base.strip()
        commit("{}")  # the result is replicated: an all-gather more
        code, output = shell(steps["Explain the step before and after"])
        check("the step is explained before and after", code == 0, output)
        code, output = shell(steps["Compare"])
        check("an all-gather is over the limits", code == 1 and "over the limit: all-gather" in output, output)
        code, output = shell(steps["Summary"])
        page = (root / "summary.md").read_text(encoding="utf-8")
        check("the summary has the page", code == 0 and "**collectives +1" in page and "all-gather" in page, output + page)
        code, output = shell("meshard diff after.json after.json --markdown page.md --fail-on \"$LIMITS\"")
        check("no change is within the limits", code == 0, output)
    print(f"{len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
