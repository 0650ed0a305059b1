"""Checks what all subcommands share: --version, unknown words, `-`, failed writes, the width of the terminal."""
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios

from expectations import Checks

TOOL = sys.argv[1]
checks = Checks("")
checks.command = [TOOL]


def ends(arguments, code, *parts):
    found, out, err = checks.run(*arguments)
    checks.check(f"{arguments} ends with {code}", found == code, f"{found}: {out}{err}")
    for part in parts:
        checks.check(f"{arguments}: {part!r}", part in out + err, out + err)


def with_output(stdout, *arguments, **options):
    done = subprocess.run([TOOL, *arguments], stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8", timeout=60,
                          **options)
    return done.returncode, done.stderr


def in_terminal(width, *arguments, **environment):
    """The lines that the program writes to a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | environment
    process = subprocess.Popen([TOOL, *arguments], stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        written += piece
    process.wait(60)
    os.close(ours)
    return written.decode().replace("\r\n", "\n").split("\n")


ends(["--version"], 0, "meshard 0.", "PJRT API 0.")
ends(["--help"], 0, "explain", "Exit codes: 0;")
ends(["explian", "x.mlir"], 2, "meshard: unknown command explian; did you mean explain?")
ends(["xyzzy"], 2, "meshard: unknown command xyzzy\n")
ends(["--verison"], 2, "unknown option --verison; did you mean --version?")
ends(["layout", "(2,4)", "--valeus"], 2, "unknown option --valeus of layout; did you mean --values?")
ends(["layout", "(2,4)", "--quux=1"], 2, "unknown option --quux of layout\n")
ends([], 2, "meshard: ", "subcommand")
ends(["layout"], 2, "meshard: ", "expression")
ends(["doctor", "--timeout", "soon"], 2, "meshard: ", "--timeout")
ends(["op", "sofmax"], 1, "unknown op 'sofmax'")
ends(["op", "tanhh"], 1, "did you mean tanh?")

# - is a file.
code, out, err = checks.run("mesh", "data=2,model=2", "--svg", "-")
checks.check("a picture on standard output", code == 0 and out.startswith("<svg") and out.rstrip().endswith("</svg>"),
             out[:200] + err)
code, out, err = checks.run("layout", "(2,4):(4,1)", "--svg", "-")
checks.check("a layout's picture", code == 0 and out.startswith("<svg"), out[:200] + err)
done = subprocess.run([TOOL, "explain", "-", "--topology", "cpu:2"], input="", capture_output=True, encoding="utf-8",
                      timeout=60)
checks.check("an empty standard input", done.returncode == 2 and "empty" in done.stderr, done.stderr)
done = subprocess.run([TOOL, "diff", "-", "-"], input="{}", capture_output=True, encoding="utf-8", timeout=60)
checks.check("standard input twice", done.returncode == 2, done.stderr)

# Failed writes.
if os.path.exists("/dev/full"):
    with open("/dev/full", "w", encoding="utf-8") as full:
        for arguments in (["mesh", "data=2"], ["--help"], ["--version"], ["op"], ["layout", "(2,4)"]):
            code, err = with_output(full, *arguments)
            checks.check(f"{arguments}: a full disk", code == 2 and "cannot write the output" in err, f"{code} {err}")
reading, writing = os.pipe()
os.close(reading)
code, err = with_output(writing, "op", restore_signals=False,
                        preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
checks.check("a closed pipe", code == 2 and "cannot write the output" in err, f"{code} {err}")
code, err = with_output(writing, "op")
checks.check("a closed pipe, with the signal", code == -signal.SIGPIPE, f"{code} {err}")
os.close(writing)

# The width of the terminal.
for width in (50, 72):
    lines = in_terminal(width, "--help")
    checks.check(f"help in {width} columns", len(lines) > 10 and max(map(len, lines)) <= width,
                 "\n".join(f"{len(line)} {line}" for line in lines))
lines = in_terminal(200, "explain", "--help", COLUMNS="60")
checks.check("COLUMNS", len(lines) > 10 and max(map(len, lines)) <= 60, "\n".join(lines))
code, out, err = checks.run("--help")
checks.check("no width in a pipe", max(map(len, out.split("\n"))) > 100, out)
checks.end()
