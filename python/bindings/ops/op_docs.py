"""Turns the comment of a C++ function into the docstring of its Python form. Used by op_bindings.py."""

import re

_TAGS = {"error": "Errors:", "pre": "Requires:"}


def docstring(comment):
    """The text of a `///` comment, with the notation of Python.

    C++ examples between `@code` and `@endcode` are left out; calls in the text become Python calls. `@error`, `@pre`
    and `@param` become paragraphs.
    """
    lines = [re.sub(r"^\s*/// ?", "", line) for line in comment.splitlines()]
    text = re.sub(r"@code.*?@endcode\n?", "", "\n".join(lines), flags=re.S)
    return "\n\n".join(_paragraph(part) for part in _parts(text) if part.strip())


def with_operands(text):
    """A docstring in which the operands `a` and `b` are `x1` and `x2`, their names in the array API standard."""
    text = re.sub(r"\bb\b", "x2", text)
    return re.sub(r"\ba\b(?!\s(?!(?:to|and|or|with|in)\s)[a-z]{3})", "x1", text)  # not the article


def _parts(text):
    """The paragraphs; a tag begins a new one, also in the middle of a line."""
    text = re.sub(r"\s*(?=@(?:error|pre|param)\b)", "\n\n", text)
    return re.split(r"\n[ \t]*\n", text.strip("\n"))


def _paragraph(part):
    tag = re.match(r"@(error|pre)\s+", part)
    parameter = re.match(r"@param\s+(\w+)\s+", part)
    if tag:
        text = part[tag.end():].strip()
        part = f"{_TAGS[tag[1]]} {text}" + ("" if text.endswith(".") else ".")
    elif parameter:
        part = f"`{_name(parameter[1])}`: {part[parameter.end():]}"
    return "\n".join(_code(line) if line.startswith("    ") else _prose(line) for line in part.splitlines())


def _name(name):
    return "axis" if name == "dimension" else name


def _prose(line):
    """A line of text: names of parameters and enumerators as in Python, and the calls in backquotes."""
    line = line.replace("`dimension`", "`axis`").replace("meshard::", "meshard.").replace("C++ number", "number")
    line = line.replace("C++ integer", "plain integer")
    line = re.sub(r"\boptions\.(\w+)", r"\1", line)
    line = re.sub(r"(?<!`)\bk([A-Z]\w*)", lambda found: f'"{_snake(found[1])}"', line)
    line = re.sub(r"`([^`]*[{:][^`]*)`", lambda found: f"`{_code(found[1])}`", line)
    return re.sub(r"\b(\w+\([^`]*?(?:\{|DType::)[^`]*?\))", lambda found: _code(found[1]), line)


def _code(text):
    """An expression of C++ in Python."""
    text = re.sub(r"\b(\w+)::named\(\{(.*?)\}\)", r'policy="named", names=[\2]', text)
    text = re.sub(r"\bDType::(\w+)", lambda found: f'"{_dtype(found[1])}"', text)
    text = re.sub(r"\b[A-Z]\w*::k(\w+)", lambda found: f'"{_snake(found[1])}"', text)
    text = text.replace("//", "#").replace(".dim(", ".shape(").replace("::", ".")
    text = re.sub(r"\.shape\((-?\d+)\)", r".shape[\1]", text)
    while True:  # the innermost braces first
        changed = re.sub(r"\{([^{}]*)\}", _braces, text)
        if changed == text:
            return text
        text = changed


def _braces(found):
    inside = found[1].strip()
    if inside.startswith("."):
        return re.sub(r"\.(\w+)\s*=\s*", lambda field: f"{_name(field[1])}=", inside)
    elements = [part for part in inside.split(",") if part.strip()]
    if all(re.fullmatch(r"\s*-?\w*\d\w*\s*|.*[.\[].*", part) for part in elements):
        return f"({inside},)" if len(elements) == 1 else f"({inside})"
    return f"[{inside}]"


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _dtype(name):
    match = re.fullmatch(r"([ufis])(\d+)", name)
    kinds = {"u": "uint", "s": "int", "i": "int", "f": "float"}
    return kinds[match[1]] + match[2] if match else {"bf16": "bfloat16", "bool_": "bool"}.get(name, name)
