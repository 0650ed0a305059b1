#!/usr/bin/env python3
"""Checks that numbers, versions, limits and lists in the docs are those of the code.

usage: check_claims.py [ROOT]

A fact is a value that is read from a source, and the phrases in which pages state it. Each phrase has one group: the
stated value. A page that states another value is a problem, and so is a fact that no page states any more: then the
phrase was rewritten, and this table has to follow. The sample report has to have the scripts of today's report page.
Checked are README.md, CONTRIBUTING.md and docs/**/*.md, except decisions, which are dated, and the generated docs/api,
docs/python and docs/reference. A phrase matches across line ends. Each problem is one line, `file:line: text`.
"""

import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

WORDS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
         "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
NUMBER = r"(\d[\d,.]*\d|\d|" + "|".join(WORDS) + ")"
VERSION = r"(\d+(?:\.\d+)*)"


class Claims:
    """The pages and sources under a folder."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.problems = []
        paths = [self.root / "README.md", self.root / "CONTRIBUTING.md", *sorted((self.root / "docs").rglob("*.md"))]
        self.pages = {}
        for path in paths:
            name = path.relative_to(self.root)
            if path.is_file() and name.parts[:2] not in (("docs", "decisions"), ("docs", "api"), ("docs", "python"), ("docs", "reference")):
                self.pages[str(name)] = path.read_text(encoding="utf-8")

    def source(self, name):
        return (self.root / name).read_text(encoding="utf-8")

    def found(self, name, pattern):
        """The group of the first match in a source. @error ValueError if there is none."""
        match = re.search(pattern, self.source(name), re.MULTILINE)
        if not match:
            raise ValueError(f"{name}:1: check_claims.py does not find `{pattern}`")
        return match[1]

    def problem(self, page, offset, text):
        self.problems.append(f"{page}:{self.pages[page].count(chr(10), 0, offset) + 1}: {text}")

    def check(self, what, value, *phrases):
        """Checks that pages that state `what` in one of the phrases state this value, or the first parts of this version."""
        used = 0
        for phrase in phrases:
            pattern = re.compile(phrase.replace(" ", r"\s+").replace("<N>", NUMBER).replace("<V>", VERSION))
            for page, text in self.pages.items():
                for match in pattern.finditer(text):
                    used += 1
                    if not same(match[1], value):
                        self.problem(page, match.start(), f"{what}: the page says {match[1]}, the code {value}")
        if not used:
            self.problems.append(f"tools/dev/check_claims.py:1: {what}: no page states it in the words of the table")

    def check_list(self, what, page, names):
        """A page names all of these, in backticks."""
        shown = set(re.findall(r"`([^`\n]+)`", self.pages.get(page, "")))
        lacking = sorted(set(names) - shown)
        self.problems.extend(f"{page}:1: {what}: the page lacks `{name}`" for name in lacking)


def same(stated, value):
    """Whether a stated number or version is `value`; a version may be shortened to its first parts."""
    if isinstance(value, str):
        return stated.split(".") == value.split(".")[:len(stated.split("."))]
    stated = WORDS.get(stated, stated)
    return float(str(stated).replace(",", "")) == float(value)


def number(text):
    """The value of an integer or simple product in C++ or Python: `1 << 20`, `std::size_t{256} << 20`, `20'000`."""
    text = re.sub(r"std::\w+\{([^{}]*)\}", r"\1", text.replace("'", ""))
    left, shift, right = text.partition("<<")
    return float(left) * 2 ** int(right) if shift else float(left)


# What pages say of a constant: what it is, its source, its name, the unit of the pages, and the phrases.
KIB, MIB = 1 << 10, 1 << 20
CONSTANTS = [
    ("virtual CPU devices", "meshard/runtime/internal/make_client.cc", "kDefaultCpuDevices", 1,
     [r"<N> by default; `MESHARD_CPU_DEVICES`", r"virtual ones of this process, <N> by default"]),
    ("programs that a process keeps", "meshard/runtime/internal/program_cache.cc", "kMostPrograms", 1,
     [r"<N> programs \(`MESHARD_MOST_PROGRAMS`\)", r"`MESHARD_MOST_PROGRAMS` \| <N>"]),
    ("seconds until a stall is reported", "meshard/base/stall_report.cc", "kDefaultSeconds", 1,
     [r"`MESHARD_STALL_SECONDS` \(<N>;", r"`MESHARD_STALL_SECONDS` \| <N>"]),
    ("mutations of a corpus", "tests/fuzz/replay_main.cc", "kMutations", 1, [r"on <N> mutations"]),
    ("recorded operations that wait", "meshard/graph/record_log.h", "kFirstCheck", 1,
     [r"When <N> recorded operations wait"]),
    ("length of a chain that produces advice", "meshard/graph/record.h", "kLongChain", 1, [r"chain of <N> operations"]),
    ("remembered numbers", "meshard/graph/storage.cc", "kMostNumbers", 1, [r"up to <N> numbers are remembered"]),
    ("calls before the parts of a program are loaded", "meshard/runtime/internal/program_here.h", "kLaunchesBefore", 1,
     [r"parts-of-small-programs\.md\) after <N> calls", r"After <N> calls, the programs with 2 and 20"]),
    ("bytes of a shard that is used in place", "meshard/runtime/internal/host_to_device.cc", "kInPlaceBytes", KIB,
     [r"A shard of at least <N> KiB"]),
    ("bytes of a value that is copied into new shards", "meshard/runtime/internal/reshard.h", "kLeastCopiedBytes", MIB,
     [r"values of <N> MiB or more are copied into new shards"]),
    ("reasons for missing programs on disk", "meshard/runtime/disk_cache.cc", "kMostReasons", 1,
     [r"`disk_misses\(\)` lists the last <N> with"]),
    ("reasons for tracing again", "meshard/trace/internal/jit_cache.cc", "kMostReasons", 1,
     [r"\(the last <N> reasons\)"]),
    ("characters of a secret", "meshard/processes/launch.cc", "kShortestSecret", 1,
     [r"secret of at least <N> characters", r"`MESHARD_PROCESS_SECRET` \| not set \| at least <N> characters"]),
    ("bytes of a message before the proof", "meshard/processes/internal/message.h", "kMostStrangerBytes", 1,
     [r"its messages are at most <N> bytes"]),
    ("connections before the proof", "meshard/processes/internal/doorkeeper.cc", "kMostStrangers", 1,
     [r"at most <N> of them are open"]),
    ("bytes of a key", "meshard/processes/internal/message.h", "kMostNameBytes", 1, [r"at most <N> for a key"]),
    ("bytes of a value of the store", "meshard/processes/internal/message.h", "kMostValueBytes", MIB,
     [r"and <N> MiB for a value"]),
    ("bytes of an all-reduce that is combined",
     "meshard/partitioned/internal/read_collective.h", "kMostCombinedBytes", MIB,
     [r"All-reduces of at most <N> MiB"]),
    ("bytes of combined all-reduces", "meshard/partitioned/internal/read_collective.h", "kMostBytesOfCall", MIB,
     [r"several operands, of at most <N> MiB"]),
    ("virtual devices of a CPU target", "meshard/target/target.cc", "kMostCpus", 1,
     [r"virtual devices of the CPU plugin, at most <N>"]),
    ("candidates of a placement in rings", "meshard/topology/ring_placement.cc", "kMostCandidates", 1,
     [r"orders, up to <N> candidates"]),
    ("alignment of host memory", "meshard/array/host_array.h", "kHostAlignment", 1,
     [r"Blocks that meshard allocates are aligned to <N> bytes"]),
    ("bytes of a huge block", "meshard/array/host_array.h", "kHugeBlockBytes", MIB, [r"Blocks of <N> MiB and more"]),
    ("size of a determinant whose derivative is accurate", "meshard/ops/composite/linalg.cc", "kPolynomialSize", 1,
     [r"accurate up to size <N>"]),
    ("time that a wait looks at its events", "meshard/pjrt/internal/await.cc", "kSpinBeforeSleep", 1,
     [r"A wait asks for up to <N> us"]),
]

# Defaults in docs/guides/environment.md that a source states beside the variable's name.
DEFAULTS = [
    ("MESHARD_PROGRAM_CACHE_MB", "meshard/runtime/disk_cache.cc", r'"MESHARD_PROGRAM_CACHE_MB", (\d+)'),
    ("MESHARD_COMPILED_CACHE_MB", "meshard/target/compile_for.cc", r'"MESHARD_COMPILED_CACHE_MB", (\d+)'),
    ("MESHARD_PROCESS_WAIT_SECONDS", "meshard/io/internal/joint_step.cc", r'"MESHARD_PROCESS_WAIT_SECONDS", (\d+)'),
    ("MESHARD_KILLS", "tests/kill/check_kill.py", r'"MESHARD_KILLS", "(\d+)"'),
    ("MESHARD_CHECKPOINT_KILLS", "tests/processes/check_checkpoints.py",
     r'"MESHARD_CHECKPOINT_KILLS"\) or \(\d+ if NIGHTLY else (\d+)\)'),
    ("MESHARD_ACROSS_PROGRAMS", "tests/processes/check_across.py",
     r'"MESHARD_ACROSS_PROGRAMS"\) or \(\d+ if NIGHTLY else (\d+)\)'),
    ("MESHARD_CHAINS", "tests/property/mesh_algebra_test.cc", r"\? \d+ : (\d+);"),
    ("MESHARD_LOOPS", "tests/property/unsynced_loops_test.cc", r"\? \d+ : (\d+);"),
    ("MESHARD_PROGRAMS", "tests/property/sharded_program/sharded_program_test.cc", r"\? \d+ : (\d+);"),
    ("MESHARD_PIPELINES", "tests/pipeline/pipeline_random_test.cc", r"\? \d+ : (\d+);"),
    ("MESHARD_ENDS", "tests/ends/ends_test.py", r'"MESHARD_ENDS", "(\d+)"'),
]


def names_of_all(claims, name):
    """The strings of `__all__ = [...]` of a Python source."""
    for statement in ast.parse(claims.source(name)).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "__all__":
            return ast.literal_eval(statement.value)
    raise ValueError(f"{name}:1: no __all__")


def check_constants(claims):
    for what, source, name, unit, phrases in CONSTANTS:
        value = number(claims.found(source, rf"\b{name}\s*(?:=\s*|\{{)([^;,}}]*(?:\}}\s*<<\s*\d+)?)\s*[;,}}]"))
        claims.check(what, value / unit, *phrases)
    for name, source, pattern in DEFAULTS:
        claims.check(f"default of {name}", number(claims.found(source, pattern)), rf"\| `{name}` \| <N>",
                     rf"`{name}=n` sets .{{0,60}}\(default <N>",
                     rf"<N> s \(`{name}`\)", rf"`{name}`, <N> MiB", rf"`{name}` limits .{{0,60}}\(default <N>")


def check_versions(claims):
    claims.check("version of meshard", claims.found("CMakeLists.txt", r"project\(meshard VERSION ([\d.]+)"),
                 r"meshard <V> \(PJRT", r"version is <V>, and packages",
                 r"find_package\(meshard <V>\)", r"libmeshard\.so\.<V>")
    oldest = "0." + claims.found("meshard/pjrt/plugin.cc", r"kOldestMinor = (\d+);")
    claims.check("oldest PJRT API of a plugin", oldest, r"PJRT API <V> or later", r"plugins from <V>\)")
    built = "0." + claims.found("third_party/pjrt/pjrt_c_api.h", r"PJRT_API_MINOR (\d+)")
    claims.check("PJRT API of the header", built, r"\(PJRT API <V>, plugins")
    for name, version in re.findall(r"^([\w-]+)==([\w.]+) ", claims.source("third_party/plugins.lock"), re.MULTILINE):
        if name in ("fastatomstruct-xla-cpu", "libtpu", "jax-cuda13-pjrt"):
            claims.check(f"version of {name}", version, rf"\b{name}`? <V>\b")
    for lock, package, phrase in (("jax", "jax", r"JAX <V>, PyTorch"), ("torch", "torch", r"PyTorch <V>, torch_xla"),
                                  ("torch_xla", "torch[-_]xla", r"torch_xla <V>; CPU plugin")):
        version = claims.found(f"bench/peers/{lock}.lock", rf"^{package}==([\d.]*\d)")
        claims.check(f"version of {lock} in the figures", version, phrase)
    claims.check("oldest CPython", claims.found("pyproject.toml", r'requires-python = ">=([\d.]+)"'),
                 r"Python <V> or later")
    claims.check("oldest PyTorch", claims.found("pyproject.toml", r'torch>=([\d.]+)"'),
                 r"PyTorch <V>, which is the oldest", r"'meshard\[torch\]' # PyTorch <V>;")
    claims.check("oldest CMake", claims.found("CMakeLists.txt", r"cmake_minimum_required\(VERSION ([\d.]+)"),
                 r"CMake <V> or later", r"cmake_minimum_required\(VERSION <V>\)")
    standard = claims.found("python/meshard/_array_api/info.py", r'__array_api_version__ = "([\d.]+)"')
    claims.check("version of the array API", standard, r"version (20\d\d\.\d\d)")


def check_counts(claims):
    sources = sorted((claims.root / "meshard/ops").glob("*.cc"))
    definition = re.compile(r"^extern constinit const OpDef \w+_op ", re.MULTILINE)
    ops = sum(len(definition.findall(path.read_text(encoding="utf-8"))) for path in sources)
    claims.check("number of primitives", ops, r"<N> primitives")
    machines = claims.source("tools/dev/odd_machine.py").split("MACHINES = {", 1)[1].split("}}", 1)[0]
    count = machines.count('": ') + machines.split("for name in (", 1)[1].split(")", 1)[0].count('"') // 2
    claims.check("number of odd machines", count, r"<N> odd machines")
    numpy = "python/meshard/numpy"
    names = set(names_of_all(claims, f"{numpy}/__init__.py"))
    for chapter in re.search(r"for _chapter in \((.*?)\)", claims.source(f"{numpy}/__init__.py"))[1].split(", "):
        names |= set(names_of_all(claims, f"{numpy}/{chapter}.py"))
    constants = {"e", "euler_gamma", "inf", "nan", "newaxis", "pi", "fft", "linalg", "finfo", "iinfo"}
    names = {name for name in names - constants if not re.fullmatch(r"(bool|u?int|float|bfloat|complex)\d*_?", name)}
    parts = sum(len(names_of_all(claims, name)) for name in (f"{numpy}/linalg.py", "python/meshard/fft.py"))
    claims.check("functions of meshard.numpy", len(names) + parts, r"`meshard\.numpy` has <N> functions")


def check_rules(claims):
    claims.check("lines of a file", number(claims.found("tools/dev/check_files.py", r"^MAX_LINES = (\d+)")),
                 r"in at most <N> lines")
    claims.check("columns of C++", number(claims.found(".clang-format", r"ColumnLimit: (\d+)")),
                 r"Google style, <N> columns")
    claims.check("random calls of ./dev nightly", number(claims.found("dev", r"\./dev compare (\d+) ")),
                 r"compares <N> \[random calls\]")
    for what, source, phrase in (("chains", "mesh_algebra_test.cc", r"It runs <N> chains"),
                                 ("programs", "sharded_program/sharded_program_test.cc", r"chains and <N> programs")):
        nightly = claims.found(f"tests/property/{source}", r"\? (\d+) : \d+;")
        claims.check(f"{what} of ./dev nightly", number(nightly), phrase)
    claims.check("combinations of meshard plan", number(claims.found("meshard/plan/search.h", r"_candidates = (\d+)")),
                 r"Up to <N> combinations")


def check_lists(claims):
    kinds = claims.found("tests/property/sharded_program/sharded_program_test.cc", r"(?s)kKinds\[\] = \{(.*?)\};")
    claims.check_list("kinds of random programs", "docs/guides/environment.md", re.findall(r'"(\w+)"', kinds))


def check_measured_rows(claims):
    """A row of the README's table of figures is one of the page with all figures."""
    rows = {match[1]: match[2] for match in re.finditer(r"^\| (`[\w.]+`) \|[^|]*(\|.*)$", claims.pages["docs/performance.md"], re.MULTILINE)}
    for match in re.finditer(r"^\| (`\w+\.[\w.]+`) \|[^|]*(\|.*)$", claims.pages["README.md"], re.MULTILINE):
        if rows.get(match[1]) != match[2]:
            claims.problem("README.md", match.start(), f"{match[1]}: docs/performance.md says {rows.get(match[1], 'nothing')}")


def check_sample_report(claims):
    sample = claims.source("docs/sample-report.html")
    for path in sorted((claims.root / "meshard/report/page").iterdir()):
        if path.suffix in (".css", ".js") and path.read_text(encoding="utf-8").strip() not in sample:
            claims.problems.append(f"docs/sample-report.html:1: it has another {path.name} than {path.relative_to(claims.root)}: "
                                   "put the page's sources around its JSON again")


def check(root):
    """The problems of the pages under `root`."""
    claims = Claims(root)
    for part in (check_versions, check_counts, check_constants, check_rules, check_lists, check_measured_rows):
        try:
            part(claims)
        except (OSError, ValueError) as error:
            claims.problems.append(str(error))
    return claims.problems


def main():
    problems = check(sys.argv[1] if len(sys.argv) > 1 else ROOT)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
