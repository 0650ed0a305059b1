#!/usr/bin/env python3
"""The long checks of tokenizers and the server: 10,000 texts for each family of tokenizers beside the packages tokenizers and
sentencepiece, and 64 clients of the package openai for ten minutes.

usage: nightly.py BIN [--texts N] [--seconds N] [--seed N]

BIN is the folder of check_text and llm_fake_server.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tools" / "fetch"))
import locked_environment  # noqa: E402


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--texts", default="10000")
    parser.add_argument("--seconds", default="600")
    parser.add_argument("--seed", default="0")
    options = parser.parse_args()
    python = locked_environment.interpreter(HERE / "nightly.lock")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        make = [python, HERE / "text" / "make_cases.py", folder, "--texts", options.texts, "--seed", options.seed]
        subprocess.run(make, check=True)
        failed += subprocess.run([options.bin / "check_text", pathlib.Path(folder) / "cases.jsonl"]).returncode != 0
    soak = [python, HERE / "server" / "soak_server.py", "--server", options.bin / "llm_fake_server"]
    failed += subprocess.run([*soak, "--seconds", options.seconds]).returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
