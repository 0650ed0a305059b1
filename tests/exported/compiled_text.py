"""Reads what a test compares out of a compiled module's text, as JAX prints it. Shares no code with meshard."""

import itertools
import pathlib
import re
import sys

import numpy as np

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "python" / "tests" / "jax_programs"))
import hlo_text

KINDS = (*hlo_text.KINDS, "ragged-all-to-all", "send", "recv")
PAIRED = ("all-gather-start", "collective-permute-start")  # their type is (operand, result, ...)


def _type_at(line):
    """The type of an instruction's line, with its tuple's brackets."""
    rest = line.split(" = ", 1)[1]
    if not rest.startswith("("):
        return rest.split(" ")[0]
    depth = 0
    for end, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return rest[:end + 1]
    raise ValueError(f"no type in {line}")


def _bytes(type_text):
    return hlo_text.bytes_of(hlo_text.ARRAY.findall(re.sub(r"\{[^}]*\}", "", type_text)))


class Frames:
    """The tables of source lines at the beginning of a module's text."""

    def __init__(self, text):
        def table(title):
            found = re.search(rf"^{title}\n((?:\d+ .*\n)+)", text, re.MULTILINE)
            return {int(n): rest for n, rest in re.findall(r"^(\d+) (.*)$", found[1], re.MULTILINE)} if found else {}

        def numbers(line):
            return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line)}

        files = {n: name.strip('"') for n, name in table("FileNames").items()}
        places = {n: numbers(line) for n, line in table("FileLocations").items()}
        self._place = {n: f"{files[one['file_name_id']]}:{one['line']}" for n, one in places.items()}
        self._frames = {n: numbers(line) for n, line in table("StackFrames").items()}

    def of(self, line):
        """The lines of an instruction, the innermost first. A frame's parent is printed plus one; the outermost's is 1."""
        found, lines = re.search(r"stack_frame_id=(\d+)", line), []
        at = int(found[1]) if found else 0
        while at > 0:
            frame = self._frames[at]
            lines.append(self._place[frame["file_location_id"]])
            at = frame.get("parent_frame_id", 1) - 1
        return [place for place in lines if not place.startswith("record_programs.py")]


def _prime_parts(axes):
    """Every axis split into parts of prime size, as (axis, size before the part, size)."""
    parts = []
    for name, size in axes.items():
        before, factor = 1, 2
        while before < size:
            if size // before % factor == 0:
                parts.append((name, before, factor))
                before *= factor
            else:
                factor += 1
    return parts


def _joined(parts, axes):
    """Neighboring parts of one axis as one part, and a whole axis as its name."""
    found = []
    for name, before, size in parts:
        if found and found[-1][0] == name and found[-1][1] * found[-1][2] == before:
            found[-1] = (name, found[-1][1], found[-1][2] * size)
        else:
            found.append((name, before, size))
    return [name if size == axes[name] else {"axis": name, "pre_size": before, "size": size} for name, before, size in found]


def axes_of(kind, groups, axes, slices):
    """The axes, or parts of axes, whose groups are these; for pairs, the axes along which something moves. None: no axes.

    `axes` is a dict of sizes. With several slices, the groups are those of one slice, whose axis is the first.
    """
    axes = dict(list(axes.items())[1:] if slices > 1 else axes)
    if kind == "collective-permute":
        sizes, moved = tuple(axes.values()), set()
        for source, target in groups:
            a, b = np.unravel_index(source, sizes), np.unravel_index(target, sizes)
            moved |= {name for d, name in enumerate(axes) if a[d] != b[d]}
        return [name for name in axes if name in moved]
    parts = _prime_parts(axes)
    sizes = [size for _, _, size in parts]
    grid = np.arange(int(np.prod(sizes, dtype=int))).reshape(sizes)
    for count in range(len(parts) + 1):
        for inside in itertools.combinations(range(len(parts)), count):
            outside = [d for d in range(len(parts)) if d not in inside]
            size = int(np.prod([sizes[d] for d in inside], dtype=int))
            rows = grid.transpose(outside + list(inside)).reshape(-1, size)
            if groups == frozenset(frozenset(row) for row in rows.tolist() if len(row) > 1):
                return _joined([parts[d] for d in inside], axes)
    return None


def collectives(text, axes, slices=1):
    """Every collective instruction, in the order of the text's calls, as a dict."""
    devices = int((re.search(r"num_partitions=(\d+)", text) or [0, 1])[1])
    bodies, entry = {}, None
    for name, is_entry, body in hlo_text.computations(text):
        bodies[name] = body
        entry = name if is_entry else entry
    frames, channels, found = Frames(text), set(), []

    def add(line, opcode, types, state):
        kind = opcode.removesuffix("-start")
        result = _type_at(line)
        operands = re.findall(r"%([\w.\-]+)", line.split(opcode + "(", 1)[1].partition(")")[0])
        if opcode in PAIRED:
            result = hlo_text.split_outside(result[1:-1])[1]
        if kind == "send":
            operands, result = operands[:1], ""
        if kind == "recv":
            operands, result = [], hlo_text.split_outside(result[1:-1])[0]
        groups = None if kind in ("send", "recv") else hlo_text.groups_of(line, devices)
        channel = re.search(r"channel_id=(\d+)", line)
        key = (kind, channel and channel[1])
        again = state["fused"] and channel is not None and key in channels
        channels.add(key)
        found.append({
            "instruction": re.match(r"\s+(?:ROOT )?%?([\w.\-]+) =", line)[1], "kind": kind,
            "axes": None if groups is None else axes_of(kind, groups, axes, slices),
            "bytes_in": 0 if again else sum(_bytes(types[name]) for name in operands),
            "bytes_out": 0 if again else _bytes(result), "executions": state["times"], "continues": again,
            "conditional": state["branch"], "lines": frames.of(line)})

    def visit(name, **state):
        lines = [line for line in bodies.get(name, "").splitlines() if hlo_text.INSTRUCTION.match(line)]
        types = {hlo_text.INSTRUCTION.match(line)[1]: _type_at(line.strip().removeprefix("ROOT ")) for line in lines}
        for line in lines:
            opcode = hlo_text.INSTRUCTION.match(line)[3]
            if opcode.removesuffix("-start") in KINDS:
                add(line.replace("ROOT ", ""), opcode, types, state)
            elif opcode == "while":
                trips, times = hlo_text.trip_count(line, bodies), state["times"]
                inside = None if trips is None or times is None else times * trips
                visit(re.search(r"body=%?([\w.\-]+)", line)[1], **{**state, "times": inside})
            elif opcode == "conditional":
                branches = re.search(r"branch_computations=\{([^}]*)\}", line)
                called = branches[1].split(",") if branches else re.findall(r"(?:true|false)_computation=(%?[\w.\-]+)", line)
                for one in called:
                    visit(one.strip().lstrip("%"), **{**state, "branch": True})
            elif opcode in ("call", "fusion", "async-start"):
                fused = state["fused"] or opcode != "call"
                for called in re.findall(r"(?:to_apply|calls)=%?([\w.\-]+)", line):
                    visit(called, **{**state, "fused": fused})

    visit(entry, times=1, fused=False, branch=False)
    return found


def entry_types(text):
    """(types of the arguments, types of the results), as one device has them: `f32[4,256,64]`, `i8[16]`."""
    inside = text.split("entry_computation_layout={", 1)[1]
    arguments, results = inside.split(")->", 1)
    depth, end = 0, 0
    for end, letter in enumerate(results):
        depth += (letter in "({[") - (letter in ")}]")
        if depth < 0:
            break
    results = results[:end]
    results = results[1:-1] if results.startswith("(") else results

    def plain(types):
        shapes = [re.sub(r"/\*.*?\*/", "", one).split("{")[0].strip() for one in hlo_text.split_outside(types)]
        return [re.sub(r"^s(?=\d)", "i", one) for one in shapes]  # signed integers are named as in StableHLO

    return plain(arguments.lstrip("(")), plain(results)


def reused(text):
    """The numbers of the arguments whose memory a result takes."""
    found = re.search(r"input_output_alias=\{(.*?)\}, entry_computation_layout", text)
    return sorted({int(n) for n in re.findall(r"\((\d+), \{", found[1])}) if found else []
