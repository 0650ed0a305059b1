"""Runs `meshard op` for a primitive, a composite, no name and an unknown name."""
import pathlib
import signal
import subprocess
import sys

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

TOOL, PAGES = sys.argv[1], pathlib.Path(sys.argv[2])


def op(*arguments):
    done = subprocess.run([TOOL, "op", *arguments], capture_output=True, encoding="utf-8", timeout=60)
    return done.returncode, done.stdout, done.stderr


def expect(what, condition):
    if not condition:
        sys.exit(f"failed: {what}")


code, out, _ = op("dot_general")
expect("a primitive's page is the reference's", code == 0 and out == (PAGES / "dot_general.md").read_text(encoding="utf-8"))
code, out, _ = op("softmax")
expect("a composite", code == 0 and "Tensor softmax(In x, std::int64_t dimension = -1);" in out)
code, out, _ = op()
expect("the list", code == 0 and {"scatter_add", "layer_norm", "operator+="} <= set(out.split()))
code, out, err = op("sofmax")
expect("an unknown name", code == 1 and out == "" and "'sofmax'" in err)
print("4 passed, 0 failed")
