#!/usr/bin/env python3
"""Checks that the commands in the pages exist, with their subcommands and options.

usage: check_commands.py --bin FOLDER [ROOT]

Reads the ```sh blocks of README.md, CONTRIBUTING.md and docs/**/*.md (except decisions), and the commands of meshard
and ./dev in backticks. FOLDER has the built programs: their `--help` must name each option. `./dev NAME` must be a
command of dev, and each option must appear in the script that it starts. Commands of other projects (mpirun, cmake)
are not checked. Each problem is one line, `file:line: text`; the last line, `N passed, N failed`, counts commands.
"""

import argparse
import functools
import pathlib
import re
import shlex
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from doc_examples import blocks  # noqa: E402

OURS = re.compile(r"^(?:build/bin/)?(meshard|gpt|serve|serve_imported|heat|pod|digits|resnet|meshard-bench)$")
# What the options of these commands of ./dev are options of.
STARTS = {"demo": "digits", "bench": "meshard-bench"}
SCRIPTS = {"new-op": "dev/new_op", "lint": "dev/lint", "odd": "dev/odd_machine", "hardware": "hardware/hardware"}


def commands_of(text):
    """(first line, words) of each command of the blocks in the shell's language, and of the code in backticks."""
    for info, line, body, _ in blocks(text):
        if info.split()[:1] == ["sh"]:
            joined = re.sub(r"\\\n", lambda match: " \0", body)
            for row in joined.split("\n"):
                for part in re.split(r"&&|;|\|(?=\s)|&\s*(?:#|$)", re.sub(r"(^|\s)#.*", "", row)):
                    yield line, split(part.replace("\0", ""))
                line += 1 + row.count("\0")
    for number, row in enumerate(text.splitlines(), 1):
        for code in re.findall(r"`((?:meshard|\./dev) [a-z][^`]*)`", row):
            yield number, split(code)


def split(command):
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


class Programs:
    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.dev = (root / "dev").read_text(encoding="utf-8")

    @functools.lru_cache(maxsize=None)  # noqa: B019  (one object in the process)
    def help(self, program, *subcommand):
        """What a program prints for --help, or None if the program was not built or has no such subcommand."""
        path = self.folder / program
        if not path.is_file():
            return None
        done = subprocess.run([path, *subcommand, "--help"], capture_output=True, encoding="utf-8",
                              stdin=subprocess.DEVNULL, check=False)
        return done.stdout + done.stderr if done.returncode == 0 else None

    def problem(self, words):
        """What is wrong with a command of ours; None if nothing is, and "" for a command that is not checked."""
        while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
            words = words[1:]
        if words and words[0] in ("mpirun", "srun"):  # their own options end where a program of ours begins
            words = words[next((i for i, word in enumerate(words) if OURS.match(word)), len(words)):]
        if words[:3] == ["python", "-m", "meshard"]:
            words = words[2:]
        if not words:
            return ""
        if words[0] == "./dev":
            return self.problem_of_dev(words[1:])
        if words[0] == "python" and len(words) > 1 and words[1].endswith(".py"):
            return self.problem_of_script(words[1], words[2:])
        ours = OURS.match(words[0])
        if not ours:
            return ""
        program, rest, text = ours[1], words[1:], None
        if not (self.folder / program).is_file():
            return ""
        if program == "meshard":
            if not rest or rest[0].startswith("-"):
                text = self.help(program)
            elif rest[0] != rest[0].upper():  # NAME stands for any
                text = self.help(program, rest[0])
                if text is None:
                    return f"meshard has no subcommand {rest[0]}"
        else:
            text = self.help(program)
        return missing_option(program, rest, text or "")

    def problem_of_dev(self, words):
        if not words or not re.fullmatch(r"[a-z-]+", words[0]):
            return None
        if not re.search(rf"^cmd_{re.sub('[-_]', '[-_]', words[0])}\(\)|^ +{words[0]}\)", self.dev, re.MULTILINE):
            return f"./dev has no command {words[0]}"
        text = self.dev
        if words[0] in STARTS and (self.folder / STARTS[words[0]]).is_file():
            text += self.help(STARTS[words[0]]) or ""
        if words[0] == "bench":
            text += "".join(path.read_text(encoding="utf-8") for path in (self.root / "bench/peers").glob("*.cc"))
        script = SCRIPTS.get(words[0])
        text += (self.root / f"tools/{script}.py").read_text(encoding="utf-8") if script else ""
        return missing_option(f"./dev {words[0]}", words[1:], text)

    def problem_of_script(self, name, words):
        path = self.root / name
        if not path.is_file():
            return f"there is no {name}" if "/" in name else ""
        return missing_option(name, words, path.read_text(encoding="utf-8"))


def missing_option(program, words, text):
    """The problem of the first option that `text` does not name, or None."""
    for word in words:
        if word == "--":  # another program follows
            break
        option = re.match(r"--[a-z][a-z-]*", word)
        if option and option[0] != "--help" and not re.search(rf"(?<![\w-]){option[0]}(?![\w-])", text):
            return f"{program} has no option {option[0]}"
    return None


def check(root, folder):
    """The problems, and the number of commands that were checked."""
    programs, problems, checked = Programs(root, folder), [], 0
    for path in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]:
        page = path.relative_to(root)
        if not path.is_file() or page.parts[:2] in (("docs", "decisions"), ("docs", "reference"), ("docs", "api"), ("docs", "python")):
            continue
        for line, words in commands_of(path.read_text(encoding="utf-8")):
            found = programs.problem(words)
            checked += found is None
            if found:
                problems.append(f"{page}:{line}: {found}")
    return problems, checked


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    arguments = parser.parse_args()
    problems, checked = check(arguments.root.resolve(), arguments.bin.resolve())
    print("\n".join(problems), end="\n" if problems else "")
    print(f"{checked} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
