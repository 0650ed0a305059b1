"""Validates the JSON of the sample reports against docs/report-schema.json, which the fields of reports determine.

usage: check_schema.py WRITE_SAMPLE_REPORTS SCHEMA [--write]

The schema must be that of the fields: names and types from the program, descriptions from the comments of the headers.
--write writes it. This file has a validator for the keywords that the schema uses. If the package jsonschema is installed, it is used too.
A member that the schema does not define is a failure, so that the schema stays complete.
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "reference"))
import field_comments  # noqa: E402

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KEYWORDS = {"$schema", "$ref", "$defs", "title", "description", "type", "required", "properties", "items", "enum", "const",
            "anyOf", "minimum"}


def has_type(value, name):
    if name in ("integer", "number"):
        allowed = int if name == "integer" else (int, float)
        return isinstance(value, allowed) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def problems(value, schema, root, place=""):
    """Yields every violation of `schema` by `value`."""
    unknown = set(schema) - KEYWORDS
    if unknown:
        yield f"{place}: the schema uses {sorted(unknown)}, which this checker does not know"
    if "$ref" in schema:
        yield from problems(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, place)
    if "anyOf" in schema and all(list(problems(value, each, root, place)) for each in schema["anyOf"]):
        yield f"{place}: fits none of anyOf"
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(has_type(value, each) for each in types):
        yield f"{place}: {value!r} is not of type {' or '.join(types)}"
        return
    if "const" in schema and value != schema["const"]:
        yield f"{place}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    if "minimum" in schema and value is not None and value < schema["minimum"]:
        yield f"{place}: {value} is below {schema['minimum']}"
    if isinstance(value, dict) and "properties" in schema:
        for name in schema["required"]:
            if name not in value:
                yield f"{place}: {name} is missing"
        for name, member in value.items():
            if name not in schema["properties"]:
                yield f"{place}: {name} is not in the schema"
            else:
                yield from problems(member, schema["properties"][name], root, f"{place}.{name}")
    if isinstance(value, list) and "items" in schema:
        for i, element in enumerate(value):
            yield from problems(element, schema["items"], root, f"{place}[{i}]")


DESCRIPTION = """What the compiler made of a program. Sizes are bytes of one device unless said otherwise; times are \
seconds. Texts that are not known are empty. Integers may have more digits than a double keeps. New members may come \
within a version; those that are not required are absent in reports of an older meshard."""


def with_comments(schema, comments):
    """The schema with comments in place of their names."""
    if isinstance(schema, list):
        return [with_comments(each, comments) for each in schema]
    if not isinstance(schema, dict):
        return schema
    name = schema.get("description")
    text = comments.get(name.removeprefix("@"), "") if isinstance(name, str) and name.startswith("@") else name
    rest = {key: with_comments(value, comments) for key, value in schema.items() if key != "description" or not text}
    if name and not text:
        del rest["description"]
    return {**rest, "description": text} if text else rest


def schema_text(fields):
    """docs/report-schema.json for the schema of the fields: a line for each member."""
    headers = [path.relative_to(ROOT) for path in sorted((ROOT / "meshard" / "explain").rglob("*.h"))]
    made = with_comments(fields, field_comments.read_all(ROOT, headers))
    leaves = json.loads(pathlib.Path(__file__).with_name("leaf_schemas.json").read_text(encoding="utf-8"))
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A report of meshard explain, version 1",
            "description": DESCRIPTION, "type": "object", "required": ["schema", "version", *made["required"]]}
    members = {"schema": {"const": "meshard.report"}, "version": {"const": 1}, **made["properties"]}

    def lines(values, indent):
        return ",\n".join(f"{indent}{json.dumps(key)}: {value}" for key, value in values.items())

    def definition(value):
        if "properties" not in value:
            return json.dumps(value)
        rest = {key: json.dumps(part) for key, part in value.items() if key != "properties"}
        return "{\n" + lines({**rest, "properties": "{\n" + lines(
            {key: json.dumps(part) for key, part in value["properties"].items()}, " " * 8) + "\n      }"}, " " * 6) + "\n    }"

    parts = {key: json.dumps(value) for key, value in head.items()}
    parts["properties"] = "{\n" + lines({key: json.dumps(value) for key, value in members.items()}, " " * 4) + "\n  }"
    parts["$defs"] = "{\n" + lines({key: definition(value) for key, value in {**leaves, **made["$defs"]}.items()},
                                   " " * 4) + "\n  }"
    return "{\n" + lines(parts, " " * 2) + "\n}\n"


def without(value, *way):
    """A copy without the member at the end of the path."""
    copy = json.loads(json.dumps(value))
    at = copy
    for step in way[:-1]:
        at = at[step]
    del at[way[-1]]
    return copy


def main():
    program, file = sys.argv[1], pathlib.Path(sys.argv[2])
    passed = failed = 0

    def check(what, found):
        nonlocal passed, failed
        if found:
            failed += 1
            print(f"failed: {what}", *found[:10], sep="\n  ")
        else:
            passed += 1

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True, timeout=60)
        reports = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(pathlib.Path(folder).glob("*.json"))}
        expected = schema_text(json.loads(pathlib.Path(folder, "schema").read_text(encoding="utf-8")))
    if sys.argv[3:] == ["--write"]:
        file.write_text(expected, encoding="utf-8")
    is_current = file.read_text(encoding="utf-8") == expected
    check("the schema is that of the fields", [] if is_current else [f"run {' '.join(sys.argv)} --write"])
    schema = json.loads(expected)
    try:
        import jsonschema
        validator = jsonschema.Draft202012Validator(schema)
    except (ImportError, AttributeError):
        validator = None
    for name, report in reports.items():
        check(name, list(problems(report, schema, schema)))
        if validator and name != "large":
            check(f"{name} (jsonschema)", [error.message for error in validator.iter_errors(report)])
    # Tests that the checks can fail.
    sample = reports["sample"]
    for broken in (without(sample, "cost"), without(sample, "collectives", 0, "form"), {**sample, "version": 2},
                   {**sample, "more": 1}, {**sample, "num_captured": -1}, {**sample, "notes": [1]}):
        check("a broken report is noticed", [] if list(problems(broken, schema, schema)) else ["it is not"])
    # The sample must fill every list, so that every part of the schema is tested.
    check("the sample fills every list", [name for name, value in sample.items() if value in (None, [], "") and not reports["gpu"][name]])
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
