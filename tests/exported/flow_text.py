"""Follows values through a compiled module's text, as JAX prints it. Shares no code with meshard."""

import re
import sys
from collections import defaultdict, namedtuple
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "tests" / "jax_programs"))
import hlo_text

Value = namedtuple("Value", "computation instruction part")
"""A part of an instruction's result: () for an array, else the indices into nested tuples, outermost first."""

# How a value depends on another one.
MOVE, ELEMENT, SUM, COMPUTE = "move", "element", "sum", "compute"

MOVES = {"bitcast", "copy", "convert", "reshape", "transpose", "slice", "dynamic-slice", "bitcast-convert", "reduce-precision",
         "reverse", "pad", "add-dependency", "copy-start", "copy-done", "slice-start", "slice-done", "all-gather",
         "all-to-all", "ragged-all-to-all", "collective-permute", "collective-broadcast"}
ELEMENTS = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "negate", "abs", "sqrt", "rsqrt", "cbrt", "power",
            "exponential", "log", "tanh", "sign", "floor", "ceil", "remainder", "clamp", "and", "or", "not", "xor",
            "exponential-minus-one", "log-plus-one", "logistic", "round-nearest-even", "round-nearest-afz"}
SUMS = {"all-reduce", "all-reduce-start", "reduce-scatter"}
EXCHANGES = {"all-gather", "all-gather-start", "all-to-all", "ragged-all-to-all", "collective-permute",
             "collective-permute-start", "collective-broadcast"}
NEUTRAL = {"constant", "iota", "partition-id", "replica-id", "after-all"}
PASSING_CALLS = {"ConcatBitcast", "ZeroCrop", "AsyncCollectiveStart", "AsyncCollectiveDone", "Sharding", "SPMDFullToShardShape",
                 "SPMDShardToFullShape", "MoveToDevice", "MoveToHost", "annotate_device_placement"}

_LINE = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = ")
_CALLED = re.compile(r"(calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)")


def _closing(text, at):
    """The position behind the bracket that closes the one at `at`."""
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] in "([{") - (text[end] in ")]}")
        if depth == 0:
            return end + 1
    raise ValueError(f"no closing bracket in {text[:80]}")


def leaves_of(kind, part=()):
    """The parts of a type, and the text of each."""
    kind = re.sub(r"/\*.*?\*/", "", kind).strip()
    if not kind.startswith("("):
        return {part: kind}
    found = {}
    for i, one in enumerate(hlo_text.split_outside(kind[1:_closing(kind, 0) - 1])):
        found |= leaves_of(one, (*part, i))
    return found


def sizes_of(kind):
    """The sizes of the first array in a type's text."""
    found = hlo_text.ARRAY.search(re.sub(r"\{[^}]*\}", "", kind))
    return [int(n) for n in found[2].split(",") if n] if found else []


class Instruction:
    def __init__(self, line):
        head = _LINE.match(line)
        self.is_root, self.name = bool(head[1]), head[2]
        rest = line[head.end():]
        end = _closing(rest, 0) if rest.startswith("(") else rest.index(" ")
        self.type, rest = rest[:end], rest[end:].strip()
        self.opcode = re.match(r"[\w\-]+", rest)[0]
        begin = len(self.opcode)
        end = _closing(rest, begin)
        inside, self.attributes = rest[begin + 1:end - 1], rest[end:]
        self.parameter = int(inside) if self.opcode == "parameter" else None
        self.operands = [] if self.opcode in ("parameter", "constant") else re.findall(r"%([\w.\-]+)", inside)
        self.called = defaultdict(list)
        for key, name in _CALLED.findall(self.attributes):
            self.called[key].append(name)
        if branches := re.search(r"branch_computations=\{([^}]*)\}", self.attributes):
            self.called["branches"] = [one.strip().lstrip("%") for one in branches[1].split(",")]
        self.leaves = leaves_of(self.type)

    def number(self, key):
        found = re.search(rf"{key}=(\d+)", self.attributes)
        return int(found[1]) if found else None

    def attribute(self, key):
        found = re.search(rf'{key}="([^"]*)"', self.attributes)
        return found[1] if found else ""


class Flow:
    """The values of a module, and how they depend on each other."""

    def __init__(self, text):
        self.computations, self.roots, self.entry, self.callers = {}, {}, None, defaultdict(list)
        for name, is_entry, body in hlo_text.computations(text):
            made = [Instruction(line) for line in body.splitlines() if _LINE.match(line)]
            self.computations[name] = {one.name: one for one in made}
            self.roots[name] = next((one for one in made if one.is_root), None)
            self.entry = name if is_entry else self.entry
        for name, made in self.computations.items():
            for one in made.values():
                for key, called in one.called.items():
                    for i, inner in enumerate(called):
                        self.callers[inner].append((name, one, key, i))
        self.before, self.after = {}, defaultdict(list)
        for name in self.reached():
            for one in self.computations[name].values():
                for part in one.leaves:
                    value = Value(name, one.name, part)
                    self.before[value] = self._depends(name, one, part)
                    for other, how in self.before[value]:
                        self.after[other].append((value, how))

    def reached(self):
        """The computations that run, without those that are applied to pairs of numbers."""
        found, waiting = [], [self.entry]
        while waiting:
            name = waiting.pop()
            if name in found or name not in self.computations:
                continue
            found.append(name)
            for one in self.computations[name].values():
                for key, called in one.called.items():
                    if key != "to_apply" or one.opcode == "call":
                        waiting += called
        return found

    def _operand(self, name, one, i, part=None):
        """The values of operand i, below a part; without one, all of it."""
        if i >= len(one.operands):
            return []
        other = self.computations[name][one.operands[i]]
        parts = [p for p in other.leaves if part is None or p[:len(part)] == part]
        return [Value(name, other.name, p) for p in parts]

    def _root(self, inner, part):
        root = self.roots.get(inner)
        if root is None:
            return []
        return [Value(inner, root.name, p) for p in root.leaves if p[:len(part)] == part]

    def _depends(self, name, one, part):
        op = one.opcode

        def moved(values):
            return [(value, MOVE) for value in values]

        if op == "parameter":
            return moved(self._arguments(name, one.parameter, part))
        if op in NEUTRAL:
            return []
        if op == "tuple":
            return moved(self._operand(name, one, part[0], part[1:]))
        if op == "get-tuple-element":
            return moved(self._operand(name, one, 0, (one.number("index"), *part)))
        if op in ("opt-barrier", "optimization-barrier", "domain"):
            return moved(self._operand(name, one, 0, part))
        if op == "while":
            return moved(self._operand(name, one, 0, part) + self._root(one.called["body"][0], part))
        if op in ("fusion", "call"):
            return moved(self._root((one.called["calls"] or one.called["to_apply"])[0], part))
        if op == "conditional":
            inner = one.called["branches"] or one.called["true_computation"] + one.called["false_computation"]
            return moved(value for branch in inner for value in self._root(branch, part))
        if op == "async-start":
            if part[:1] == (1,):
                return moved(self._root(one.called["calls"][0], part[1:]))
            return moved(self._operand(name, one, part[1] if len(part) > 1 else 0, part[2:])) if part[:1] == (0,) else []
        if op == "async-update":
            return moved(self._operand(name, one, 0, part))
        if op == "async-done":
            return moved(self._operand(name, one, 0, (1, *part)))
        if op in SUMS:
            return [(value, SUM) for value in self._operand(name, one, part[0] if part else 0)]
        if op == "all-reduce-done":
            return moved(self._operand(name, one, 0, part))
        if op in ("all-gather-start", "collective-permute-start"):
            return moved(self._operand(name, one, part[1] if len(part) > 1 else 0))
        if op in ("all-gather-done", "collective-permute-done"):
            return moved(self._operand(name, one, 0, (1, *part)))
        if op == "send":
            return moved(self._operand(name, one, 0)) if part[:1] == (0,) else []
        if op == "recv":
            return self._received(name, one) if part[:1] == (0,) else []
        if op in ("recv-done", "send-done"):
            return moved(self._operand(name, one, 0, (0,))) if part in ((), (0,)) else []
        if op in MOVES:
            several = op in EXCHANGES and len(one.operands) > 1 and part
            values = moved(self._operand(name, one, part[0] if several else 0))
            return values + [(v, COMPUTE) for i in range(1, len(one.operands)) for v in self._operand(name, one, i)
                             if not several]
        if op in ("concatenate", "dynamic-update-slice", "select"):
            data = {"concatenate": range(len(one.operands)), "dynamic-update-slice": range(2), "select": range(1, 3)}[op]
            return [(v, MOVE if i in data else COMPUTE) for i in range(len(one.operands)) for v in self._operand(name, one, i)]
        target = one.attribute("custom_call_target")
        if target == "AllocateBuffer":
            return []
        if target in PASSING_CALLS:
            return moved(v for i in range(len(one.operands)) for v in self._operand(name, one, i))
        return [(v, ELEMENT if op in ELEMENTS or (op == "scatter" and i == 0) else COMPUTE)
                for i in range(len(one.operands)) for v in self._operand(name, one, i)]

    def _arguments(self, name, number, part):
        """What a parameter gets at each call of its computation."""
        found = []
        for caller, call, key, i in self.callers[name]:
            if caller not in self.computations or (key == "to_apply" and call.opcode != "call"):
                continue
            if key in ("body", "condition"):
                found += self._operand(caller, call, 0, part) + self._root(call.called["body"][0], part)
            elif key in ("branches", "true_computation", "false_computation"):
                found += self._operand(caller, call, (i if key == "branches" else key == "false_computation") + 1, part)
            else:
                found += self._operand(caller, call, number, part)
        return found

    def _received(self, name, one):
        """What the send of the same transfer between slices sends. A sum between them is one."""
        key = one.attribute("_xla_host_transfer_rendezvous")
        for other in self.computations[name].values():
            if other.opcode == "send" and key and other.attribute("_xla_host_transfer_rendezvous") == key:
                adds = "_xla_megascale_reduce_operation" in other.attributes
                return [(value, SUM if adds else MOVE) for value in self._operand(name, other, 0)]
        return []

    def reach(self, values, kinds, forward):
        """All values that these reach, or that reach these, through dependences of some kinds."""
        edges = self.after if forward else self.before
        seen, waiting = set(values), list(values)
        while waiting:
            for other, how in edges.get(waiting.pop(), ()):
                if how in kinds and other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return seen

    def origins(self, values):
        """(the program's arguments that the values are moved from, whether any of them is computed)."""
        arguments, computed = set(), False
        for value in self.reach(values, (MOVE,), forward=False):
            one = self.computations[value.computation][value.instruction]
            if one.opcode == "parameter" and value.computation == self.entry:
                arguments.add(one.parameter)
            elif one.opcode not in (*NEUTRAL, "parameter") and one.attribute("custom_call_target") != "AllocateBuffer":
                computed = computed or (all(how != MOVE for _, how in self.before[value]) and not self._is_filled(value))
        return arguments, computed

    def _is_filled(self, value):
        """True for a constant that fills an array."""
        if self.computations[value.computation][value.instruction].opcode != "broadcast":
            return False
        return self.origins([other for other, _ in self.before[value]]) == (set(), False)

    def arguments(self, values, kinds):
        """The numbers of the program's arguments that the values depend on in these ways."""
        found = set()
        for value in self.reach(values, kinds, forward=False):
            one = self.computations[value.computation][value.instruction]
            if one.opcode == "parameter" and value.computation == self.entry:
                found.add(one.parameter)
        return found

    def results(self, values, kinds):
        """The numbers of the program's results that the values reach."""
        root = self.roots[self.entry]
        return {value.part[0] if value.part else 0 for value in self.reach(values, kinds, forward=True)
                if value.computation == self.entry and value.instruction == root.name}

    def in_loop(self, name):
        """True if a computation is inside a while loop."""
        seen, waiting = set(), [name]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            for caller, _, key, _ in self.callers[at]:
                if key in ("body", "condition"):
                    return True
                waiting.append(caller)
        return False


def bytes_of(kind):
    return hlo_text.bytes_of(hlo_text.ARRAY.findall(re.sub(r"\{[^}]*\}", "", kind)))
