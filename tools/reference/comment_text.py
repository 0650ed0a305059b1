"""Turns the `///` comment of a declaration into Markdown.

Lines that are indented by four spaces, and those between `@code` and `@endcode` or ``` marks, are code. `@error`,
`@pre` and `@param` begin a text of their own, which goes on until the next one, an empty line or code.
"""

import re

TAG = re.compile(r"@(error|pre|param|name)\b ?")


def escaped(text):
    """Prose in which `*` and `<` next to text are no marks of Markdown. Code is left as it is."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"\*(?=\S)|(?<=\S)\*|<(?=[a-zA-Z/])", r"\\\g<0>", part) for part in parts[::2]]
    return "`".join(parts)


def texts(comment):
    """(kind, text) of each paragraph, code block or tag, in order. Kinds: prose, code, error, pre, param, name."""
    kind, lines = None, []
    for line in comment.split("\n") + [""]:
        line = line.removeprefix("///").removeprefix(" ")
        fenced = kind == "code" and lines[0].startswith(("```", "@code"))
        if fenced:
            if line.startswith(("```", "@endcode")):
                yield kind, "\n".join(lines[1:])
                kind, lines = None, []
            else:
                lines.append(line)
            continue
        indented = line.startswith("    ") or line.startswith(("```", "@code"))
        if kind and (not line or indented != (kind == "code")):
            yield kind, "\n".join(lines)
            kind, lines = None, []
        if indented:
            kind = "code"
            lines.append(line.removeprefix("    "))
            continue
        pieces = TAG.split(line)
        for tag, piece in zip([None, *pieces[1::2]], pieces[::2]):
            if tag and kind:
                yield kind, "\n".join(lines)
                lines = []
            kind = tag or (kind if kind or not piece else "prose")
            if piece.strip():
                lines.append(piece.strip())


def markdown(comment):
    """(prose, errors): the comment as Markdown, and the text of its `@error`s, which is empty without one."""
    blocks, parameters, required, errors = [], [], [], []
    for kind, text in texts(comment):
        if kind == "code":
            blocks.append(f"```cpp\n{text}\n```")
        elif kind == "param":
            name, _, rest = text.partition(" ")
            parameters.append(f"- `{name}`: {escaped(rest)}")
        elif kind != "name":
            {"prose": blocks, "pre": required, "error": errors}[kind].append(escaped(text))
    blocks += ["\n".join(parameters)] if parameters else []
    blocks += [f"Requires: {' '.join(required)}"] if required else []
    return "\n\n".join(blocks), " ".join(errors)
