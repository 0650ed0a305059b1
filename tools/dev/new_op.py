#!/usr/bin/env python3
"""Writes the files of a new primitive, modeled on an existing one.

usage: ./dev new-op NAME [--like OP]

Copies meshard/ops/OP.{h,cc} (default: exp) under the new name, writes NAME_test.cc, which fails until it is filled in,
and adds the line to meshard/ops/op_list.inc in alphabetical order. NAME is the name in the array API standard if it has
one (https://data-apis.org/array-api), otherwise the StableHLO mnemonic, in snake_case.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINE = re.compile(r"MESHARD_OP\((\w+)\)")

TEST = '''#include "meshard/ops/{name}.h"

#include <gtest/gtest.h>

namespace meshard {{
namespace {{

// The conformance suites check {name} on its samples: type, text, derivative, shardings. This file tests what
// is special about it: edge values, and the calls that must fail.
TEST({pascal}, SpecialCases) {{ FAIL() << "write what is special about {name}"; }}

}}  // namespace
}}  // namespace meshard
'''

NEXT = """Now, in meshard/ops/{name}.cc:
  example          a line that runs with x, y (f32[2,3]) in scope
  domain           the dtypes that an element-wise op accepts
  mnemonic         the op of StableHLO (now {like}'s), or emit
  vjp              its derivative (now {like}'s), or kNotDifferentiable
  samples          calls for the conformance suites, including odd shapes
An op that is not element-wise has no domain, but infer, sharding_rule and batch.
The build includes the header in meshard/ops/all.h by itself. Fill in {name}_test.cc, then run:
./dev test ops && ./dev test conformance"""


class NewOpError(Exception):
    """The request is invalid; the message says why."""


def pascal(name):
    return "".join(word.capitalize() for word in name.split("_"))


def add_to_list(text, name):
    """The op list with a line for `name`, in alphabetical order.
    @error if the list already has the name, or is not in order."""
    lines = text.rstrip("\n").split("\n")
    places = [(i, LINE.match(line)[1]) for i, line in enumerate(lines) if LINE.match(line)]
    names = [op for _, op in places]
    if name in names:
        raise NewOpError(f"op_list.inc already contains {name}")
    if names != sorted(names):
        raise NewOpError("op_list.inc is not in alphabetical order")
    after = [i for i, op in places if op < name]
    at = after[-1] + 1 if after else (places[0][0] if places else len(lines))
    return "\n".join(lines[:at] + [f"MESHARD_OP({name})"] + lines[at:]) + "\n"


def renamed(text, like, name):
    """The model's text under the new name, without its documentation paragraph, which does not apply."""
    text = re.sub(rf"\b{like}(_op)?\b", lambda m: name + (m[1] or ""), text)
    text = text.replace(pascal(like) + "Attributes", pascal(name) + "Attributes")
    text = re.sub(r'\.doc =(\s*"(?:[^"\\]|\\.)*")+', '.doc = ""', text)
    return re.sub(r"(?:^///.*\n)+(?=Tensor )", f"/// What {name} computes.\n", text, flags=re.MULTILINE)


def new_op(root, name, like):
    """Writes the files and returns their names. @error NewOpError; no file is written then."""
    folder = pathlib.Path(root) / "meshard" / "ops"
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_?", name):
        raise NewOpError(f"{name}: the name of an op must be snake_case")
    model = {suffix: folder / (like + suffix) for suffix in (".h", ".cc")}
    for path in model.values():
        if not path.is_file():
            raise NewOpError(f"cannot find the template {path.relative_to(root)}")
    texts = {name + suffix: renamed(path.read_text(encoding="utf-8"), like, name) for suffix, path in model.items()}
    texts[f"{name}_test.cc"] = TEST.format(name=name, pascal=pascal(name))
    for file in texts:
        if (folder / file).exists():
            raise NewOpError(f"meshard/ops/{file} already exists")
    texts["op_list.inc"] = add_to_list((folder / "op_list.inc").read_text(encoding="utf-8"), name)
    for file, text in texts.items():
        (folder / file).write_text(text)
    return [f"meshard/ops/{file}" for file in texts]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("name")
    parser.add_argument("--like", default="exp")
    arguments = parser.parse_args()
    try:
        written = new_op(ROOT, arguments.name, arguments.like)
    except NewOpError as error:
        print(f"new-op: {error}", file=sys.stderr)
        return 1
    print("\n".join(["wrote:"] + [f"  {file}" for file in written]))
    print(NEXT.format(name=arguments.name, like=arguments.like))
    return 0


if __name__ == "__main__":
    sys.exit(main())
