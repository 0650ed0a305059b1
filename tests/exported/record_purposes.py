#!/usr/bin/env python3
"""Lowers the programs of purposes/ with JAX, compiles them with JAX, and writes the modules and what their collectives are for.

usage: record_purposes.py FOLDER [NAME...] [--libtpu FILE] [--texts FOLDER]

For each program, NAME.mlir.gz is the module with its source lines, and NAME.json has the gathers of arguments, the sums of
gradients and the gathers of new weights that JAX's own compile for a TPU has. Each is found twice, and the record is only
written if both agree:

- by its size: every size of a weight has a prime factor of its own (purposes/common.py);
- by following its values through the text of the compiled module (flow_text.py).

The layer is where the program uses the weight: `LAYERS` of the program, else the weight's folder. The phase is forward if the
loss depends on the collective.
"""

import argparse
import gzip
import importlib
import json
import os
import pathlib
import pkgutil
import re
import sys
from collections import defaultdict

HERE = pathlib.Path(__file__).resolve().parent
OTHERS = ("common",)
ALL = ("move", "element", "sum", "compute")
NEAR = ("move", "element", "sum")


def program_names():
    return [one.name for one in pkgutil.iter_modules([str(HERE / "purposes")]) if one.name not in OTHERS]


def odd_part(sizes):
    number = 1
    for size in sizes:
        number *= size
    while number and number % 2 == 0:
        number //= 2
    return number


def folder_of(name):
    keys = re.findall(r"\[(?:'([^']*)'|(\d+))\]|\.(\w+)", name)
    return "/".join(next(part for part in key if part) for key in keys[:-1])


def common_layer(layers):
    """The folder that contains all of them."""
    parts = [layer.split("/") if layer else [] for layer in layers]
    common = []
    for level in zip(*parts):
        if len(set(level)) > 1:
            break
        common.append(level[0])
    return "/".join(common)


class Truth:
    """What the collectives of a compiled program are for."""

    def __init__(self, program, lowered, text):
        import flow_text
        import jax

        self.program, self.flow = program, flow_text.Flow(text)
        self.sizes_of, self.exchanges, self.sums = flow_text.sizes_of, flow_text.EXCHANGES, flow_text.SUMS
        self.bytes_of = flow_text.bytes_of
        # False: a sum that reaches no weight is not one of gradients, although it has the size of a weight.
        self.sizes_tell = getattr(program, "SIZES_TELL", True)
        leaves = jax.tree_util.tree_flatten_with_path(lowered.args_info)[0]
        names = [self.argument_name(path) for path, _ in leaves]
        kept = sorted(lowered._lowering.compile_args["kept_var_idx"])
        self.names = [names[i] for i in kept]
        self.shapes = [tuple(leaves[i][1].shape) for i in kept]
        out = jax.tree_util.tree_flatten_with_path(lowered.out_info)[0]
        # The first result is the new parameters, which are the first argument, or the first ones.
        count = sum(path[0] == jax.tree_util.SequenceKey(0) for path, _ in out)
        self.new = {i: names[i] for i in range(count)}
        self.trained = set(self.new.values())
        self.losses = {i for i, (_, one) in enumerate(out) if one.shape == () and one.dtype.kind == "f" and i >= count}
        # The arguments that are not a batch: those that a result replaces.
        replaced = sum(path[0] != jax.tree_util.SequenceKey(len(lowered.out_info) - 1) for path, _ in out)
        self.kept = {kept.index(i) for i in range(replaced) if i in kept}
        self.by_size = defaultdict(set)
        self.weight_names = [n for n in self.names if n in self.trained or any(n.startswith(r) for r in ("base", "teacher"))]
        for name, shape in zip(self.names, self.shapes):
            if name in self.weight_names and shape:
                self.by_size[odd_part(shape)].add(name)

    def argument_name(self, path):
        import inspect
        import jax

        (_, number), rest = (None, path[0].idx), path[1:]
        if path[0].idx == 0:  # (arguments, keywords)
            number, rest = path[1].idx, path[2:]
        return self.argument_names()[number] + jax.tree_util.keystr(rest)

    def argument_names(self):
        return self.program._argument_names

    def layers_of(self, name):
        """The layers in which the program uses a weight."""
        found = []
        for layer, parts in getattr(self.program, "LAYERS", {}).items():
            if any(f"['{part}']" in name if re.fullmatch(r"\w+", part) else part in name for part in parts):
                found += layer if isinstance(layer, tuple) else [layer]
        return found or [folder_of(name)]

    def groups(self):
        """The collectives: lists of (computation, instruction) with one channel."""
        found, done = defaultdict(list), set()
        for name in reversed(self.order()):
            for one in self.flow.computations[name].values():
                if one.opcode in self.exchanges or one.opcode in self.sums or one.opcode == "send":
                    channel = one.number("channel_id")
                    key = (one.opcode, channel) if channel else (one.opcode, name, one.name)
                    if (name, one.name) not in done:
                        found[key].append((name, one))
                        done.add((name, one.name))
        return list(found.values())

    def order(self):
        """The computations that run, callers first and in the order of their calls, reversed."""
        seen = []

        def visit(name):
            if name in seen or name not in self.flow.computations:
                return
            seen.append(name)
            for one in self.flow.computations[name].values():
                for key, called in one.called.items():
                    if key != "to_apply" or one.opcode == "call":
                        for inner in called:
                            visit(inner)
        visit(self.flow.entry)
        return seen[::-1]

    def purpose(self, group):
        """What a collective is for; None if it has nothing to do with weights."""
        computation, first = group[0]
        operands = first.operands[:1] if first.opcode == "send" else first.operands
        flow, names, kinds = self.flow, [], set()
        for i, operand in enumerate(operands):
            source = flow.computations[computation][operand]
            while source.opcode in ("pad", "bitcast"):  # of a value whose size the devices do not divide
                source = flow.computations[computation][source.operands[0]]
            sent = [value for value in flow._operand(computation, first, i)]
            results = [value for place, one in group for value in self.made(place, one, i, len(operands))]
            sized = self.by_size.get(odd_part(self.sizes_of(source.type)), set()) if self.sizes_of(source.type) else set()
            kind, found = self.one_value(first, sent, results, sized)
            if kind:
                kinds.add(kind)
                names += [name for name in found if name not in names]
        if not kinds:
            return None
        if len(kinds) > 1:
            raise SystemExit(f"{first.name}: is {kinds}")
        kind = kinds.pop()
        results = [value for place, one in group for i in range(len(operands)) for value in self.made(place, one, i, len(operands))]
        phase = {"gradient": "backward", "update": "optimizer"}.get(kind)
        if phase is None:
            phase = "forward" if flow.results(results, ALL) & self.losses else "backward"
        return {"purpose": kind, "names": sorted(names), "layers": self.layers(computation, names), "phase": phase}

    def made(self, place, one, i, count):
        parts = [p for p in one.leaves if count == 1 or not p or p[-1] == i]
        if one.opcode == "send":
            key = one.attribute("_xla_host_transfer_rendezvous")
            return [value for value in self.flow.before if value.part == (0,) and value.computation == place and
                    self.flow.computations[place][value.instruction].opcode == "recv" and
                    self.flow.computations[place][value.instruction].attribute("_xla_host_transfer_rendezvous") == key]
        return [self.value(place, one.name, p) for p in parts]

    @staticmethod
    def value(*parts):
        import flow_text

        return flow_text.Value(*parts)

    def one_value(self, one, sent, results, sized):
        """(what an operand is for, the weights), found in both ways."""
        arguments, computed = self.flow.origins(sent)
        if one.opcode != "send" and odd_part(self.sizes_of(one.type)) % 11 == 0:
            return None, set()  # with the batch's factor: activations
        moved = {self.names[i] for i in arguments}
        adds = one.opcode in self.sums or "_xla_megascale_reduce_operation" in one.attributes
        reached = {self.new[i] for i in self.flow.results(results, NEAR) if i in self.new}
        if moved and not computed:  # also a sum of each device's own part, in an array of zeros
            if not moved <= set(self.weight_names):
                return None, set()  # a batch, or a state
            if sized and not moved <= sized:
                raise SystemExit(f"{one.name}: moves {moved}, and has the size of {sized}")
            return ("weight" if moved <= self.trained else "argument"), moved
        if self.flow.results(results, ALL) & self.losses and adds:
            return None, set()  # a sum in the forward pass
        if adds and (reached or sized and self.sizes_tell):
            if reached and sized and not reached & sized:
                raise SystemExit(f"{one.name}: adds up for {reached}, and has the size of {sized}")
            if not sized and reached:
                print(f"  {one.name}: reaches {sorted(reached)}, with no weight's size: {self.sizes_of(one.type)}")
            both = reached & sized or (reached if not sized else sized)
            if len(both) > 1 and len(sized) > 1 and not reached:
                raise SystemExit(f"{one.name}: is one of {sized}")
            return "gradient", both & self.trained
        if not adds and sized and reached & sized:
            # The optimizer has computed with the weight, or with a state.
            optimized = self.flow.arguments(sent, ("move", "element")) & self.kept
            return ("update" if optimized else "gradient"), reached & sized
        # A function of the weight: what acts on each element makes it of values of this size.
        made_of = {self.names[i] for i in self.flow.arguments(sent, ("move", "element"))} & sized
        if not adds and len(made_of) == 1:
            return ("weight" if made_of <= self.trained else "argument"), made_of
        if sized:
            print(f"  {one.name} ({one.opcode}): has the size of {sorted(sized)}; computed {computed}, moved {moved}, reaches {reached}")
        return None, set()

    def layers(self, computation, names):
        """The layers that are right: of one weight, each in which it is used; of several, what these or their folders have in
        common."""
        each = [self.layers_of(name) for name in names]
        found = each[0]
        if len(each) > 1:
            found = [common_layer([one for layers in each for one in layers])]
            folder = common_layer([folder_of(name) for name in names])
            found += [folder] if not found[0] and folder else []
        loop = self.flow.in_loop(computation)
        return [("/".join(["loop", *([one] if one else [])]) if loop else one) for one in found]

    def collectives(self):
        found = []
        for group in self.groups():
            purpose = self.purpose(group)
            if purpose:
                computation, first = group[0]
                sent = sum(self.bytes_of(self.flow.computations[computation][name].type) for name in first.operands)
                found.append({"kind": first.opcode.removesuffix("-start"), "instructions": [one.name for _, one in group],
                              "bytes_in": sent, **purpose})
        return found


def devices_of(program):
    from jax.experimental import topologies

    slices = getattr(program, "SLICES", 1)
    options = {"num_slices": slices} if slices > 1 else {}
    return topologies.get_topology_desc(platform="tpu", topology_name=program.TOPOLOGY, **options).devices


def record(name, folder, texts=None):
    program = importlib.import_module(f"purposes.{name}")
    lowered = program.lower(devices_of(program))
    compiled = lowered.compile()
    text = compiled.as_text()
    if texts:
        (texts / f"{name}.txt").write_text(text)
    module = lowered.as_text(debug_info=True)
    program._argument_names = argument_names(module, lowered)
    found = Truth(program, lowered, text).collectives()
    (folder / f"{name}.mlir.gz").write_bytes(gzip.compress(module.encode(), mtime=0))
    slices = getattr(program, "SLICES", 1)
    truth = {"about": " ".join(program.__doc__.split()), "module": f"{name}.mlir.gz",
             "topology": program.TOPOLOGY + (f"*{slices}" if slices > 1 else ""), "collectives": found}
    lines = ",\n  ".join(json.dumps(one) for one in found)
    head = json.dumps({key: truth[key] for key in ("about", "module", "topology")})[:-1]
    (folder / f"{name}.json").write_text(f'{head}, "collectives": [\n  {lines}]}}\n')
    return found


def argument_names(module, lowered):
    """The names of the function's arguments, as the module has them: `params`."""
    import jax

    count = len(lowered.args_info[0])
    leaves = [len(jax.tree_util.tree_leaves(one)) for one in lowered.args_info[0]]
    main = re.search(r"func\.func public @main\((.*?)\) -> ", module, re.DOTALL)[1]
    names = re.findall(r'loc\((#loc\d*|"[^"]*")\)', main)
    places = dict(re.findall(r'^(#loc\d*) = loc\("((?:[^"\\]|\\.)*)"\)?', module, re.MULTILINE))
    kept = sorted(lowered._lowering.compile_args["kept_var_idx"])
    shown = {leaf: places.get(name, name.strip('"')) for leaf, name in zip(kept, names)}
    found, at = [], 0
    for i in range(count):
        name = next((shown[leaf] for leaf in range(at, at + leaves[i]) if leaf in shown), "")
        found.append(re.match(r"\w*", name)[0])
        at += leaves[i]
    return found


def newest_libtpu():
    import record_programs

    return record_programs.newest_libtpu()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--libtpu")
    parser.add_argument("--texts", type=pathlib.Path, help="a folder for the compiled texts, to read")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    os.environ.update(TPU_LIBRARY_PATH=arguments.libtpu or newest_libtpu(), TPU_SKIP_MDS_QUERY="1", JAX_PLATFORMS="")
    import jax

    jax.config.update("jax_hlo_source_file_canonicalization_regex", f"{re.escape(str(HERE))}/|.*/site-packages/")
    arguments.folder.mkdir(exist_ok=True)
    for name in arguments.names or program_names():
        print(name, flush=True)
        found = record(name, arguments.folder, arguments.texts)
        for one in found:
            print(f"  {one['purpose']:8} {one['kind']:14} {one['phase']:9} {one['layers']} {one['names']}")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
