"""Validates the JSON of the sample reports against docs/report-schema.json.

usage: check_schema.py WRITE_SAMPLE_REPORTS SCHEMA

This file has a validator for the keywords that the schema uses. If the package jsonschema is installed, it is used too.
A member that the schema does not define is a failure, so that the schema stays complete.
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile

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


def without(value, *way):
    """A copy without the member at the end of the path."""
    copy = json.loads(json.dumps(value))
    at = copy
    for step in way[:-1]:
        at = at[step]
    del at[way[-1]]
    return copy


def main():
    program, schema = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    passed = failed = 0

    def check(what, found):
        nonlocal passed, failed
        if found:
            failed += 1
            print(f"failed: {what}", *found[:10], sep="\n  ")
        else:
            passed += 1

    try:
        import jsonschema
        validator = jsonschema.Draft202012Validator(schema)
    except (ImportError, AttributeError):
        validator = None
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True, timeout=60)
        reports = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(pathlib.Path(folder).glob("*.json"))}
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
