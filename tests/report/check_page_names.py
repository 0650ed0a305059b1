"""Checks that the page of a report reads only members that reports have.

usage: check_page_names.py PAGE_FOLDER SCHEMA

Each member that the scripts name must be in the schema, in an object that the scripts make, or one of the browser's. What
is read of a value whose place in the report is known (`report.memory.spare`, a name for it, the rows of a table, the
parameter of a function for each element) must be a member of that value.
"""
import json
import pathlib
import re
import sys

# Members of JavaScript's and the browser's own objects, which reports do not have.
BROWSER = set("""
abs add addEventListener append beginPath ceil clearRect clientWidth clientX clientY clip concat content createElement
createElementNS ctrlKey cos delete deltaX deltaY device devicePixelRatio documentElement entries every fill fillRect
fillStyle fillText filter find findIndex flat floor font forEach from get getAttribute getBoundingClientRect getContext
getElementById getPropertyValue has height includes indexOf join keys left length lineWidth localeCompare log10 map
matches max metaKey min namespaceURI observe parse pointerId preventDefault push PI rect reduce remove replaceChildren
restore round save scrollIntoView set setAttribute setPointerCapture setProperty setTransform shiftKey slice some sort
splice split sqrt stringify strokeRect strokeStyle style textBaseline textContent toFixed toLocaleString toLowerCase toPrecision
toggle top trim assign key removeAttribute reverse values width after classList cell sin toString body hidden pop
""".split())
EACH = "map|filter|forEach|find|findIndex|some|every|flatMap"


def without_comments(text):
    return re.sub(r"/\*[\s\S]*?\*/|(?m:^\s*//.*$)", "", text)


class Types:
    """The types of a schema."""

    def __init__(self, schema):
        self.schema = schema

    def resolved(self, type):
        """The type without null, or what a reference refers to; None if it is none of one form."""
        while type and ("$ref" in type or "anyOf" in type):
            if "$ref" in type:
                type = self.schema["$defs"][type["$ref"].removeprefix("#/$defs/")]
            else:
                rest = [each for each in type["anyOf"] if each.get("type") != "null"]
                type = rest[0] if len(rest) == 1 else None
        return type

    def element(self, type):
        type = self.resolved(type)
        return self.resolved(type["items"]) if type and "items" in type else None

    def member(self, type, name):
        """The type of a member. Raises KeyError if there is no such member; None if it is not known."""
        type = self.resolved(type)
        if not type or "properties" not in type:
            return None
        return self.resolved(type["properties"][name])

    def names(self):
        found, left = set(), [self.schema]
        while left:
            each = left.pop()
            if isinstance(each, dict):
                found |= set(each.get("properties", {}))
                left.extend(each.values())
            elif isinstance(each, list):
                left.extend(each)
        return found


def problems_of_part(part, types):
    """Yields what a function reads that its value does not have."""
    known = {"report": types.schema}

    def follow(chain):
        """The type of `a.b[0].c`; None if it is not known."""
        words = re.findall(r"\w+|\[[^\]]*\]", chain)
        type = known.get(words[0])
        for word in words[1:]:
            if type is None:
                return None
            if word.startswith("["):
                type = types.element(type)
            else:
                inner = types.resolved(type)
                if not inner or "properties" not in inner:
                    return None
                if word not in inner["properties"]:
                    raise KeyError(word)
                type = types.member(type, word)
        return type

    def type_of(chain):
        try:
            return follow(chain)
        except KeyError:  # reported below
            return None

    chain = r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[[^\]\[]*\])*"
    for name, value in re.findall(rf"(?:const|,) (\w+) = ({chain})(?=[;,])", part):
        known.setdefault(name, type_of(value))
    for value, name in re.findall(rf"({chain})\.(?:{EACH})\(\((\w+)", part):
        known.setdefault(name, types.element(type_of(value)))
    for value, name in re.findall(rf"({chain})\.reduce\(\(\w+, (\w+)", part):
        known.setdefault(name, types.element(type_of(value)))
    for name, value in re.findall(rf"for \(const (\w+) of ({chain})\)", part):
        known.setdefault(name, types.element(type_of(value)))
    tables = re.split(r"(?=sortedTable\(\[)", part)
    for text in tables:
        rows = re.search(rf"\n\s*\], ({chain})[,)]", text) if text.startswith("sortedTable") else None
        if text.startswith("sortedTable"):
            known["row"] = types.element(type_of(rows[1])) if rows else None
        for found in re.findall(chain, text):
            try:
                follow(found)
            except KeyError as name:
                yield f"`{found}`: there is no {name} there"


def problems(scripts, schema):
    """Yields what the scripts, by file name, read that reports do not have."""
    types = Types(schema)
    texts = {name: without_comments(text) for name, text in scripts.items()}
    own = set()
    for text in texts.values():
        own |= set(re.findall(r"(?:[{,]|^)\s*(\w+)(?=:| *[,}]|\(\w*\) \{)", text, re.MULTILINE))
        own |= set(re.findall(r"\.(\w+) = ", text))
    allowed = types.names() | own | BROWSER
    for name, text in texts.items():
        for member in sorted(set(re.findall(r"(?<=[\w)\]]\.)([A-Za-z_]\w*)", text)) - allowed):
            yield f"{name}: .{member} is not a member of reports, of the page's own objects or of the browser's"
        for part in re.split(r"(?m)^(?=function |const )", text):
            yield from (f"{name}: {problem}" for problem in problems_of_part(part, types))


# Each reads a member that there is not: of no object, of another object, of an element, of a row.
WRONG = ["text(report.memory.spair);", "text(report.memory.certainty);", "const all = report.memory;\ntext(all.places);",
         "report.notes.concat(report.reshards.map((one) => one.spare));",
         "sortedTable([\n  {value: (row) => row.spare},\n], report.reshards, {});"]


def main():
    folder, path = sys.argv[1:]
    scripts = {path.name: path.read_text(encoding="utf-8") for path in sorted(pathlib.Path(folder).glob("*.js"))}
    schema = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    found = sorted(set(problems(scripts, schema)))
    found += [f"this check misses `{wrong}`" for wrong in WRONG if not list(problems({"wrong.js": wrong}, schema))]
    print("\n".join(found) if found else f"{len(scripts)} scripts read only what reports have")
    return 1 if found or not scripts else 0


if __name__ == "__main__":
    sys.exit(main())
