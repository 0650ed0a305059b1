"""The collectives of a compiled module, read from its text as XLA prints it. Shares no code with meshard."""

import itertools
import re
from collections import namedtuple

import numpy as np

Found = namedtuple("Found", "kind bytes executions groups")
"""`bytes` is the larger of what a device sends and receives; `groups` a frozenset of frozensets of partitions, and of
(source, target) for a permutation; executions None: in a loop of unknown length."""

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute", "collective-broadcast")
BYTES = {"pred": 1, "s8": 1, "u8": 1, "s16": 2, "u16": 2, "bf16": 2, "f16": 2, "s32": 4, "u32": 4, "f32": 4, "s64": 8,
         "u64": 8, "f64": 8, "c64": 8, "token": 0}

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) (?:\([^\n]*\) -> [^\n]*)?\{$", re.MULTILINE)
INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = (\(.*?\)|\S+) ([\w\-]+)\(", re.MULTILINE)
_MESH_GROUPS = re.compile(
    r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\(\[([\d,]+)\](?:T\(([\d,]+)\))?\))? ?\{([^}]*)\}")
ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")


def split_outside(text):
    """Splits at the commas that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [one.strip() for one in parts if one.strip()]


def bytes_of(arrays):
    """Of a list of (type, sizes)."""
    total = 0
    for dtype, sizes in arrays:
        total += BYTES[dtype] * int(np.prod([int(s) for s in sizes.split(",") if s], dtype=np.int64))
    return total


def _group_lists(line, devices):
    """The lists of replica_groups, in any of the three forms that XLA prints."""
    if "replica_groups={}" in line:
        return [list(range(devices))]
    if found := re.search(r"replica_groups=\{(\{.*?\})\}", line):
        return [[int(n) for n in group.split(",")] for group in re.findall(r"\{([\d,]+)\}", found[1])]
    if found := re.search(r"replica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", line):
        order = np.arange(devices).reshape([int(n) for n in found[3].split(",")])
        if found[4]:
            order = order.transpose([int(n) for n in found[4].split(",")])
        return order.reshape(int(found[1]), int(found[2])).tolist()
    if found := _MESH_GROUPS.search(line):
        axes = re.findall(r"'(\w+)'=(\d+)", found[1])
        names, sizes = [name for name, _ in axes], [int(size) for _, size in axes]
        over = re.findall(r"'(\w+)'(?::\((\d+)\)(\d+))?", found[4])
        if any(pre for _, pre, _ in over):
            raise ValueError(f"a sub-axis in {line}")
        order = np.arange(devices)
        if found[2]:
            order = order.reshape([int(n) for n in found[2].split(",")])
        if found[3]:
            order = order.transpose([int(n) for n in found[3].split(",")])
        inside = [names.index(name) for name, _, _ in over]
        outside = [d for d in range(len(names)) if d not in inside]
        grid = order.reshape(sizes).transpose(outside + inside)
        return grid.reshape(-1, int(np.prod([sizes[d] for d in inside], dtype=int))).tolist()
    raise ValueError(f"no replica groups in {line}")


def groups_of(line, devices):
    """The groups of a collective's text, each as a set. Groups of one device are left out."""
    if pairs := re.search(r"source_target_pairs=\{(.*?)\}\}", line):
        return frozenset(tuple(int(n) for n in pair) for pair in re.findall(r"\{?(\d+),(\d+)", pairs[1]))
    return frozenset(frozenset(group) for group in _group_lists(line, devices) if len(group) > 1)


def computations(text):
    """(name, whether it is the entry, lines) of each."""
    starts = list(_COMPUTATION.finditer(text))
    for start, end in itertools.zip_longest(starts, starts[1:]):
        yield start[2], bool(start[1]), text[start.end():end.start() if end else len(text)].split("\n}")[0]


def trip_count(line, bodies):
    """Of a while loop, if the compiler wrote it, or the condition only compares a counter that starts at 0."""
    if trips := re.search(r'"known_trip_count":\{"n":"(\d+)"\}', line):
        return int(trips[1])
    condition = bodies[re.search(r"condition=%?([\w.\-]+)", line)[1]]
    root = re.search(r"ROOT [^\n]* pred\[\][^ ]* compare\(%[\w.\-]+, %([\w.\-]+)\), direction=LT", condition)
    bound = root and re.search(rf"%{re.escape(root[1])} = s32\[\][^ ]* constant\((\d+)\)", condition)
    return int(bound[1]) if bound else None


def collectives(text):
    """The collectives of a module's text, as sorted Found."""
    devices = int((re.search(r"num_partitions=(\d+)", text) or [0, 1])[1])
    bodies, entry, channels = {}, None, set()
    for name, is_entry, body in computations(text):
        bodies[name] = body
        entry = name if is_entry else entry
    found = []

    def visit(name, times, fused=False):
        types = {one[1]: one[2] for one in INSTRUCTION.finditer(bodies.get(name, ""))}
        for line in bodies.get(name, "").splitlines():
            instruction = INSTRUCTION.match(line)
            if not instruction:
                continue
            opcode = instruction[3].removesuffix("-start")
            if instruction[3].endswith("-done"):
                continue
            if opcode in KINDS:
                channel = re.search(r"channel_id=(\d+)", line)
                if fused and channel and channel[1] in channels:
                    continue  # one collective, spread over several fusions
                channels.add(channel and channel[1])
                arrays = ARRAY.findall(instruction[2])
                if instruction[3] in ("all-gather-start", "collective-permute-start"):  # (operand, result, ...)
                    arrays = arrays[1:2]
                operands = line[instruction.end():].partition(")")[0]
                sent = [array for name in re.findall(r"%([\w.\-]+)", operands) for array in ARRAY.findall(types[name])]
                size = max(bytes_of(arrays), bytes_of(sent))
                found.append(Found(opcode, size, times, groups_of(line, devices)))
            elif opcode == "while":
                body = re.search(r"body=%?([\w.\-]+)", line)[1]
                trips = trip_count(line, bodies)
                visit(body, times * trips if trips and times is not None else None)
            elif opcode in ("call", "fusion", "async", "conditional"):
                for called in re.findall(r"(?:to_apply|calls|computation)=%?([\w.\-]+)", line):
                    visit(called, times, fused or opcode in ("fusion", "async"))
                if branches := re.search(r"branch_computations=\{([^}]*)\}", line):
                    for called in branches[1].split(","):
                        visit(called.strip().lstrip("%"), times)

    visit(entry, 1)
    return sorted(found, key=sort_key)


def sort_key(found):
    groups = sorted(tuple(group) if isinstance(group, tuple) else tuple(sorted(group)) for group in found.groups)
    return (found.kind, found.bytes, found.executions or 0, groups)


def reported(report):
    """The collectives of a meshard report in the same terms."""
    axes = report.mesh_axes
    names, grid = list(axes), np.arange(int(np.prod(list(axes.values()), dtype=int))).reshape(list(axes.values()))
    found = []
    for one in report.collectives:
        if one.continues:
            continue
        if one.kind == "collective-permute":
            groups = _shifted(one, names, grid)
        else:
            inside = [names.index(axis) for axis in one.axes]
            outside = [d for d in range(len(names)) if d not in inside]
            size = int(np.prod([grid.shape[d] for d in inside], dtype=int))
            rows = grid.transpose(outside + inside).reshape(-1, size)
            groups = frozenset(frozenset(row) for row in rows.tolist() if len(row) > 1)
        found.append(Found(one.kind, one.bytes, one.executions if one.executions_known else None, groups))
    return sorted(found, key=sort_key)


def _shifted(one, names, grid):
    (text,) = one.shifts
    axis, by, wraps = re.fullmatch(r'"(\w+)" by ([+-]\d+)( without wrapping)?', text).groups()
    pairs = set()
    for index in np.ndindex(*grid.shape):
        to = list(index)
        d = names.index(axis)
        to[d] += int(by)
        if wraps and not 0 <= to[d] < grid.shape[d]:
            continue
        to[d] %= grid.shape[d]
        pairs.add((int(grid[index]), int(grid[tuple(to)])))
    return frozenset(pairs)
