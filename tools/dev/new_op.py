#!/usr/bin/env python3
"""Writes a new primitive, modeled on an existing one.

usage: ./dev new-op NAME [--like OP]

If OP (default: exp) is in a family, as element-wise ops are, its declaration, its definition and its row in the table
of tests are copied under the new name, below the originals. Otherwise OP has a pair of files: meshard/ops/OP.{h,cc}
and its attributes are copied, and NAME_test.cc is written, which fails until it is filled in. NAME is the name in the array API standard
if it has one (https://data-apis.org/array-api), otherwise the StableHLO mnemonic, in snake_case.
"""

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPS = pathlib.PurePath("meshard/ops")
TABLE = pathlib.PurePath("tests/support/element_wise_table.h")
SAMPLES = pathlib.PurePath("tests/support/op_samples/element_wise.cc")
ATTRIBUTES = OPS / "definition" / "attributes.h"

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

NEXT = """Now, in the definition:
  example          a line that runs with x, y (f32[2,3]) in scope
  domain           the dtypes that an element-wise op accepts
  mnemonic         the op of StableHLO (now {like}'s), or emit
  vjp              its derivative (now {like}'s), or kNotDifferentiable
And in tests/support/op_samples/: its calls for the conformance suites, including odd shapes.
An op that is not element-wise has no domain, but infer, sharding_rule and batch. The row of an element-wise op needs
the mnemonic and the function that the op computes.
The build lists the op and its header by itself. Then run:
./dev test ops && ./dev test conformance"""


class NewOpError(Exception):
    """The request is invalid; the message says why."""


def pascal(name):
    return "".join(word.capitalize() for word in name.split("_"))


def renamed(text, like, name):
    """The model's text under the new name, without its documentation paragraph, which does not apply."""
    text = re.sub(rf"\b{like}(_op)?\b", lambda m: name + (m[1] or ""), text)
    text = text.replace(pascal(like) + "Attributes", pascal(name) + "Attributes")
    text = re.sub(r'\.doc =(\s*"(?:[^"\\]|\\.)*")+', '.doc = ""', text)
    return re.sub(r"(?:^///.*\n)+(?=Tensor )", f"/// What {name} computes.\n", text, flags=re.MULTILINE)


def copied_below(path, text, pattern, like, name, between=""):
    """The text with a renamed copy of what the pattern matches below it. @error it matches nothing."""
    found = re.search(pattern, text, re.MULTILINE | re.DOTALL)
    if not found:
        raise NewOpError(f"{path} does not define {like} in the usual form; choose another op with --like")
    return text[:found.end()] + between + renamed(found[0], like, name) + text[found.end():]


def in_family(root, family, name, like):
    """The changed files of an op that is added to the family of `like`."""
    definition = (rf"^extern constinit const OpDef {like}_op\b(?:(?!^extern |^namespace ).)*?^Tensor {like}\("
                  r"(?:[^\n]*\}\n|.*?^\}\n)")
    patterns = {OPS / f"{family}.h": (rf"(?:^///[^\n]*\n)+Tensor {like}\([^;]*;\n", "\n"),
                OPS / f"{family}.cc": (definition, "\n"),
                **{rows: (rf'^      \{{"{like}",.*?\}},\n(?=      \{{"|  \}};)', "") for rows in (TABLE, SAMPLES)}}
    return {path: copied_below(path, (root / path).read_text(encoding="utf-8"), pattern, like, name, between)
            for path, (pattern, between) in patterns.items()}


def in_own_files(root, name, like):
    texts = {OPS / f"{name}{suffix}": renamed((root / OPS / f"{like}{suffix}").read_text(encoding="utf-8"), like, name)
             for suffix in (".h", ".cc")}
    texts[OPS / f"{name}_test.cc"] = TEST.format(name=name, pascal=pascal(name))
    for path in texts:
        if (root / path).exists():
            raise NewOpError(f"{path} already exists")
    attributes = (root / ATTRIBUTES).read_text(encoding="utf-8")
    struct = rf"^struct {pascal(like)}Attributes\b.*?^\}};\n"
    if re.search(struct, attributes, re.MULTILINE | re.DOTALL):
        texts[ATTRIBUTES] = copied_below(ATTRIBUTES, attributes, struct, like, name, "\n")
    return texts


def header_of(root, op):
    """The name of the header that declares the op, without `.h`; None if no header does."""
    for path in sorted((root / OPS).glob("*.h")):
        if re.search(rf"^Tensor {op}\(", path.read_text(encoding="utf-8"), re.MULTILINE):
            return path.stem
    return None


def new_op(root, name, like):
    """Writes the files and returns their names. @error NewOpError; no file is written then."""
    root = pathlib.Path(root)
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*_?", name):
        raise NewOpError(f"{name}: the name of an op must be snake_case")
    present, model = header_of(root, name), header_of(root, like)
    if present:
        raise NewOpError(f"{OPS}/{present}.h already declares {name}")
    if not model:
        raise NewOpError(f"no header of {OPS}/ declares {like}")
    texts = in_own_files(root, name, like) if model == like else in_family(root, model, name, like)
    for path, text in texts.items():
        (root / path).write_text(text, encoding="utf-8")
    return [str(path) for path in texts]


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
