#!/usr/bin/env python3
"""Writes the Python bindings of the ops from their C++ headers.

usage: op_bindings.py --root ROOT --out FOLDER --files N HEADER...

Reads every documented function of the headers (paths relative to ROOT) and writes FOLDER/ops_0.cc to ops_<N-1>.cc,
op_enums.h, which they include, and results.pyi, the named tuples of the stubs.
A new op with parameters of known types needs nothing else. A parameter of another type is an error, which says what to
add here: to the types below, or to WRITTEN_BY_HAND.

In Python, the dimensions of an op are called `axis`, as in the array API standard; the operands of an op of two
tensors are `x1` and `x2`; enumerators are strings (`GeluForm::kErf` is `"erf"`); the fields of a struct of options are
keyword arguments; a struct of results is a named tuple.
"""

import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "reference"))
import declarations  # noqa: E402  (a program's own module)
import op_docs  # noqa: E402
import op_examples  # noqa: E402

# Functions that take C++ functions, handles or other things for which Python has a form of its own, in the files of
# this folder; and functions that only other ops call.
WRITTEN_BY_HAND = {
    "checkpoint_tensors", "checkpoint_name_of", "assign", "keeping_carries", "kept_results", "scan_length", "number_state",
    "index_state", "next_index", "index_is_less", "bound", "case_of", "stack_each", "slice_each", "range", "index",
    "manual_mesh", "leave_manual", "mark_sharding", "operator+", "operator-", "operator*", "operator/", "operator%",
    "operator<", "operator<=", "operator>", "operator>=", "operator&", "operator|", "operator^", "operator~",
    "operator+=", "operator-=", "operator*=", "operator/=", "constant", "custom_call", "with_debug_print",
    "set_debug_print_handler", "formatted", "elements_text", "print_debug_line", "needing", "pure_callback",
    "call_host_function", "scan_tensors", "switch_tensors", "while_tensors", "widened",
    "layer_slice", "full_to_shard", "shard_to_full", "select_and_scatter_add", "optimization_barrier",
    "broadcast_shapes", "literal", "why_not_unreduced",
}

# C++ type -> (type of the bound function's parameter, expression of the argument; {} is the parameter).
PLAIN = {
    "In": ("const Operand&", "{}.in()"),
    "Tensor": ("const OptionalOperand&", "{}.tensor()"),
    "const std::vector<Tensor>&": ("const Operands&", "{}.tensors()"),
    "const std::vector<In>&": ("const Operands&", "{}.ins()"),
    "DType": ("DType", "{}"),
    "Shape": ("const Shape&", "{}"),
    "const Shape&": ("const Shape&", "{}"),
    "Dimensions": ("const Dimensions&", "{}"),
    "const Dimensions&": ("const Dimensions&", "{}"),
    "DimensionList": ("const DimensionList&", "{}"),
    "NewShape": ("const NewShape&", "{}"),
    "std::int64_t": ("std::int64_t", "{}"),
    "double": ("double", "{}"),
    "bool": ("bool", "{}"),
    "std::string_view": ("std::string_view", "{}"),
    "std::string": ("std::string", "{}"),
    "const Mesh&": ("const Mesh&", "{}"),
    "const Sharding&": ("const Sharding&", "{}"),
    "const PartitionSpec&": ("const PartitionSpec&", "{}"),
    "const CollectiveAxes&": ("const CollectiveAxes&", "{}"),
    "const std::vector<std::pair<std::int64_t, std::int64_t>>&":
        ("const std::vector<std::pair<std::int64_t, std::int64_t>>&", "{}"),
    "WindowPadding": ("const WindowPadding&", "{}"),
    "ConvolutionLayout": ("const ConvolutionLayout&", "{}"),
    "PadValue": ("const PadValue&", "{}"),
}
# Optional values: None in Python.
OPTIONAL = {"std::int64_t", "double", "DType", "Shape", "Sharding", "PadValue"}
RESULTS = {"Tensor", "std::vector<Tensor>", "std::pair<Tensor, Tensor>", "void"}
RENAMED = {"dimension": "axis", "channel_dimension": "channel_axis", "from": "from_", "lambda": "lambda_", "in": "in_"}


class Unknown(Exception):
    pass


def split_list(text):
    """The parts between commas that are not inside brackets."""
    parts, depth, part = [], 0, ""
    for i, char in enumerate(text):
        if char in "<({[":
            depth += 1
        elif char in ")}]" or (char == ">" and text[i - 1] != "-"):
            depth -= 1
        if char == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    return parts + [part.strip()] if part.strip() else parts


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


class Headers:
    """What the headers declare besides functions: enumerations and structs, by name."""

    def __init__(self, texts):
        self.enums, self.structs = {}, {}
        for text in texts:
            code = without_comments(text)
            for match in re.finditer(r"enum class (\w+)(?:\s*:\s*[\w:]+)?\s*\{([^}]*)\}", code):
                self.enums[match[1]] = [part.split("=")[0].strip() for part in split_list(match[2])]
            for match in re.finditer(r"^struct (\w+)(?: : (\w+))? \{\n(.*?)^\};", code, re.S | re.M):
                self.structs[match[1]] = (match[2], match[3])

    def fields(self, name):
        """(type, name, default or None) of each field, those of the base first."""
        base, body = self.structs[name]
        fields = self.fields(base) if base else []
        body = re.sub(r"MESHARD_FIELDS\([^)]*\)", "", body)
        for statement in body.split(";"):
            statement = " ".join(statement.split())
            match = re.match(r"((?:std::optional<[^>]*>|[\w:]+(?:<[^>]*>)?))\s+(.+)$", statement)
            if not match or "(" in match[2]:
                continue
            for one in split_list(match[2]):
                field, _, default = (part.strip() for part in one.partition("="))
                fields.append((match[1], field, default or None))
        return fields


class Parameter:
    """A parameter of a bound function."""

    def __init__(self, cpp_type, name, default, keyword=False):
        self.cpp_type, self.default, self.keyword = cpp_type, default, keyword
        self.name = name
        self.python = RENAMED.get(name, name)
        if cpp_type == "DimensionList":
            self.python = "axis"

    def bound(self, headers):
        """(parameter type, expression of the argument, expression of the default or None)."""
        default = self.default
        optional = re.fullmatch(r"std::optional<(.*)>", self.cpp_type)
        if optional and (optional[1] in OPTIONAL or optional[1] in headers.enums):
            return f"std::optional<{optional[1]}>", self.name, None if default is None else "nb::none()"
        if self.cpp_type in headers.enums:
            return self.cpp_type, self.name, default and f"{default}"
        if self.cpp_type not in PLAIN:
            raise Unknown(f"the type {self.cpp_type} of the parameter {self.name}")
        bound, use = PLAIN[self.cpp_type]
        if default is not None:
            if self.cpp_type in ("DimensionList", "Tensor"):
                default = "nb::none()"
            elif self.cpp_type in ("Dimensions", "const Dimensions&", "Shape", "const Shape&"):
                default = "nb::tuple()"
            elif self.cpp_type == "WindowPadding":
                default = 'nb::str("valid")'
            elif self.cpp_type == "ConvolutionLayout":
                default = 'nb::make_tuple("", "", "")'
            elif self.cpp_type in ("std::string", "std::string_view"):
                default = 'nb::str("")'
            elif self.cpp_type == "In":
                default = f"nb::cast({default})"
        return bound, use.format(self.name), default


def parameters_of(headers, text):
    """The parameters of a declaration in Python's order, and the C++ arguments built from them."""
    parameters, arguments = [], []
    for part in split_list(text):
        declared, _, default = (piece.strip() for piece in part.partition("="))
        match = re.match(r"(.*?[\s&>])(\w+)$", declared)
        cpp_type, name = match[1].strip(), match[2]
        if cpp_type == "SourceLocation":
            continue
        struct = re.sub(r"^const (\w+)&$", r"\1", cpp_type)
        if struct in headers.structs:
            fields = [Parameter(kind, field, value or "{}", keyword=True)
                      for kind, field, value in headers.fields(struct)]
            parameters += fields
            arguments.append((struct, fields))
        else:
            parameters.append(Parameter(cpp_type, name, default or None))
            arguments.append((None, [parameters[-1]]))
    return parameters, arguments


def default_of(parameter, headers):
    _, _, default = parameter.bound(headers)
    if default == "{}":
        kind = parameter.cpp_type
        default = {"bool": "false", "std::int64_t": "0", "double": "0.0"}.get(kind)
        if kind in headers.enums:
            default = f"{kind}::{headers.enums[kind][0]}"
        if default is None:
            raise Unknown(f"the default of the parameter {parameter.name}")
    return default


def binding(headers, name, result, text, comment, module):
    """The statement that binds one function."""
    parameters, arguments = parameters_of(headers, text)
    if [p.cpp_type for p in parameters] == ["In", "In"] and [p.name for p in parameters] == ["a", "b"]:
        parameters[0].python, parameters[1].python = "x1", "x2"
        comment = op_docs.with_operands(comment)
    takes = ", ".join(f"{p.bound(headers)[0]} {p.name}" for p in parameters)
    body = []
    operands = [p.name for p in parameters if p.cpp_type == "In"]
    if operands:
        body.append("settle({" + ", ".join("&" + name for name in operands) + "});")
    uses = []
    for struct, fields in arguments:
        if struct is None:
            uses.append(fields[0].bound(headers)[1])
        else:
            variable = f"made_{snake(struct)}"
            body.append(f"{struct} {variable};")
            body += [f"{variable}.{field.name} = {field.bound(headers)[1]};" for field in fields]
            uses.append(variable)
    scope, _, short = name.rpartition("::")
    call = f"meshard::{name}({', '.join(uses)})"
    if result == "void":
        body.append(call + ";")
    elif result in headers.structs:
        names = ", ".join(f'"{field}"' for _, field, _ in headers.fields(result))
        values = ", ".join(f"tensor_object(result.{field})" for _, field, _ in headers.fields(result))
        body.append(f"auto result = {call};")
        body.append(f'return nb::steal<{result}Object>(named_result("{result}", {{{names}}}, {{{values}}}).release());')
    elif result == "std::pair<Tensor, Tensor>":
        body += [f"auto [first, second] = {call};",
                 "return TensorPair(nb::make_tuple(tensor_object(first), tensor_object(second)));"]
    elif result == "std::vector<Tensor>":
        body.append(f"return list_of({call});")
    elif result == "Tensor":
        body.append(f"return tensor_object({call});")
    else:
        raise Unknown(f"the result type {result}")
    annotations, keyword_only = [], False
    for parameter in parameters:
        if parameter.keyword and not keyword_only:
            annotations.append("nb::kw_only()")
            keyword_only = True
        one = f'nb::arg("{parameter.python}")'
        if parameter.cpp_type in ("DimensionList", "Tensor") or parameter.cpp_type.startswith("std::optional"):
            one += ".none()"
        if parameter.default is not None:
            one += f" = {default_of(parameter, headers)}"
        annotations.append(one)
    pieces = [f'"{short.rstrip("_")}"',
              f"[]({takes}) {{\nCallerLine line;\n" + "\n".join(body) + "\n}"] + annotations
    pieces.append(f'R"~({comment})~"')
    return f"{module}.def({', '.join(pieces)});"


def read_functions(root, names):
    """(header, name, result, parameters, docstring) of every function to bind, in the order of the headers.

    @error ValueError for an example of a function that is not bound
    """
    examples = dict(op_examples.EXAMPLES)
    for name in names:
        results = {}  # comments of structs of results, which describe their functions
        for found in declarations.read(name, (root / name).read_text(encoding="utf-8")):
            if found.kind == "kType":
                results[found.name] = found.comment
            if found.kind != "kFunction" or found.text.startswith(("template", "friend")):
                continue
            if found.name.startswith("internal::") or found.name.rpartition("::")[2] in WRITTEN_BY_HAND:
                continue
            text = " ".join(without_comments(found.text).split())
            match = re.match(r"(.+?)\s+(\w+)\((.*)\);$", text)
            if not match:
                raise Unknown(f"{name}: the declaration {text}")
            comment = f"{results.get(match[1], '')}\n///\n{found.comment}"
            text = op_docs.docstring(comment)
            example = examples.pop(found.name, None)  # of the first overload
            yield name, found.name, match[1], match[3], text + (f"\n\n{example.strip()}" if example else "")
    if examples:
        raise ValueError(f"op_examples.py has examples of functions that are not bound: {', '.join(examples)}")


def enum_text(name, enumerators):
    rows = ", ".join(f'{{"{snake(e[1:] if re.match("k[A-Z]", e) else e)}", meshard::{name}::{e}}}' for e in enumerators)
    return f"""template <>
struct nanobind::detail::type_caster<meshard::{name}>
    : meshard::python::EnumCaster<meshard::{name}> {{
  static constexpr auto Name = const_name("str");
}};
template <>
inline const std::vector<std::pair<const char*, meshard::{name}>>
    meshard::python::kEnumerators<meshard::{name}>{{{rows}}};
"""


def result_class(name):
    """The class of a named tuple, for the types of results."""
    return f"""struct {name}Object : nanobind::object {{
  NB_OBJECT({name}Object, nanobind::object, "{name}", PyTuple_Check)
}};
"""


def result_stub(headers, name):
    """The named tuple in the stubs (make_stubs.py)."""
    fields = "".join(f"    {field}: Tensor\n" for _, field, _ in headers.fields(name))
    return f"class {name}(NamedTuple):\n{fields}\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--files", required=True, type=int)
    parser.add_argument("headers", nargs="+")
    arguments = parser.parse_args()
    root = arguments.root
    texts = [(root / name).read_text(encoding="utf-8") for name in arguments.headers]
    texts.append((root / "meshard/stablehlo/types.h").read_text(encoding="utf-8"))
    headers = Headers(texts)
    statements = []
    try:
        for header, name, result, text, comment in read_functions(root, arguments.headers):
            module = "random" if name.startswith("random::") else "ops"
            try:
                statements.append(binding(headers, name, result, text, comment, module))
            except Unknown as unknown:
                raise Unknown(f"{header}: {name}: {unknown}; extend the types of op_bindings.py") from unknown
    except (Unknown, ValueError) as error:
        print(f"op_bindings: {error}", file=sys.stderr)
        return 1
    arguments.out.mkdir(parents=True, exist_ok=True)
    used = [name for name in headers.enums if any(re.search(rf"\b{name} \w+[,)]|<{name}>", s) for s in statements)]
    named = [name for name in headers.structs if any(f'named_result("{name}"' in s for s in statements)]
    (arguments.out / "op_enums.h").write_text(
        "// Made by op_bindings.py.\n#pragma once\n#include \"meshard/core.h\"\n#include \"meshard/ops/linalg.h\"\n"
        "#include \"python/bindings/ops/op_arguments.h\"\n" + "".join(enum_text(n, headers.enums[n]) for n in used) +
        "namespace meshard::python {\n" + "".join(result_class(n) for n in named) + "}  // namespace meshard::python\n")
    (arguments.out / "results.pyi").write_text("".join(result_stub(headers, n) for n in named))
    each = -(-len(statements) // arguments.files)
    for i in range(arguments.files):
        body = "\n".join(statements[i * each:(i + 1) * each])
        (arguments.out / f"ops_{i}.cc").write_text(f"""// Made by op_bindings.py.
#include "op_enums.h"

namespace nb = nanobind;

namespace meshard::python {{

void bind_ops_{i}(nb::module_& ops, nb::module_& random);
void bind_ops_{i}([[maybe_unused]] nb::module_& ops, [[maybe_unused]] nb::module_& random) {{
using namespace meshard::random;  // for its structs of options
{body}
}}

}}  // namespace meshard::python
""")
    return 0


if __name__ == "__main__":
    sys.exit(main())
