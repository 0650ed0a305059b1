"""Compiles the programs with JAX and explains them with meshard, in a process of its own. Prints JSON."""

import importlib
import json
import os
import pkgutil
import sys

OTHERS = ("common", "hlo_text", "run")


def program_names():
    return [m.name for m in pkgutil.iter_modules([os.path.dirname(os.path.abspath(__file__))]) if m.name not in OTHERS]


def plain(found):
    def groups(one):
        return sorted(list(group) if isinstance(group, tuple) else sorted(group) for group in one.groups)

    return [[one.kind, one.bytes, one.executions, groups(one)] for one in found]


def main(platform):
    import jax
    import meshard

    from jax_programs import hlo_text

    if platform == "cpu":
        devices = jax.devices("cpu")
    else:
        from jax.experimental import topologies
        devices = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x4").devices
    results = {}
    for name in program_names():
        lowered = importlib.import_module(f"jax_programs.{name}").lower(devices)
        compiled = lowered.compile()
        report = meshard.explain(lowered)
        memory = compiled.memory_analysis()
        results[name] = {
            "target": report.target.name,
            "jax": plain(hlo_text.collectives(compiled.as_text())),
            "meshard": plain(hlo_text.reported(report)),
            "lines": [[one.kind, one.certainty, one.places] for one in report.collectives],
            "purposes": [[one.kind, one.purpose.kind, one.purpose.names, one.purpose.phase, one.cause]
                         for one in report.logical_collectives],
            "arguments": [value.name for value in report.arguments],
            "jax_memory": [memory.argument_size_in_bytes, memory.output_size_in_bytes, memory.alias_size_in_bytes],
            "memory": [report.memory.arguments, report.memory.outputs, report.memory.aliased],
        }
    print("RESULTS " + json.dumps(results))


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    main(sys.argv[1])
