#!/usr/bin/env python3
"""Turns the examples of the docs into programs.

usage: doc_examples.py --generate OUT.cc --root ROOT   one GoogleTest program of all examples
       doc_examples.py --program PAGE.md               the page's first example with a main
       doc_examples.py --cmake PAGE.md                 the page's first ```cmake block

An example is a ```cpp block of README.md, CONTRIBUTING.md or docs/**/*.md (except docs/reference/, docs/api/
and docs/python/, which are generated), or the text between @code and @endcode in a /// comment of a header under meshard/.
  ```cpp           compiled and run; the body of a function, or a program if it has a main
  ```cpp no-run    only compiled (`@code no-run` in a header)
  ```cpp from PATH a part of that file, which must contain it word for word
  ```cpp file NAME like cpp or, with no-run at the end, cpp no-run; source lines are those of the file NAME
  ```text output   directly after an example: its output, line by line; a line `...` stands for any lines
  ```sh run        a command of a page that run_page.py runs, which also compares its output
  ```python        a program, if it imports meshard, that python/tests/test_doc_examples.py runs, which also compares
                   its output; directly after a ```cpp block, the output of both. `python no-run` is only compiled;
                   in `python file NAME`, source lines are those of the file NAME, which later blocks of the page
                   can import
An example without a main has `using namespace meshard;` and <meshard/meshard.h>. Its #include lines move to the
top of the file. Compiler messages refer to the page and its lines. A block of a page that has only structs is pasted
before the function of the next block: MESHARD_FIELDS is only allowed there, and a block that mixes such a struct with
statements, which no reader can paste anywhere, is an error.
"""

import argparse
import pathlib
import re
import sys


FOLLOWED = object()  # what another program runs, comparing its output


class Example:
    """One block: its position, its lines, whether it is run, its expected output, and its file for readers."""

    def __init__(self, page, line, text, run=True, file=None):
        self.page, self.line, self.text, self.run, self.output, self.file = page, line, text, run, None, file
        self.declared = None  # the block of structs that the page shows before it

    def has_main(self):
        return re.search(r"^int main\(", self.text, re.MULTILINE) is not None

    def only_declares(self):
        """Whether it has nothing but structs, besides includes and comments."""
        structs, rest = split_structs(split_includes(self.text)[1])
        return bool(structs) and not re.sub(r"//.*", "", rest).strip()

    def name(self):
        return re.sub(r"\W+", "_", str(self.page)).strip("_") + f"_line_{self.line}"


def blocks(text):
    """Info string, first line number and text of each fenced block, with the lines since the previous block."""
    info, start, lines, between = None, 0, [], []
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"```+\s*(.*?)\s*$", line)
        if mark and info is None:
            info, start, lines = mark[1], number + 1, []
        elif mark:
            yield info, start, "\n".join(lines), not "".join(between).strip()
            info, between = None, []
        elif info is None:
            between.append(line)
        else:
            lines.append(line)


def options(words):
    """Whether a block is run, and its file, from the words after its language. None if they are something else."""
    run = words[-1:] != ["no-run"]
    words = words if run else words[:-1]
    if words[:1] == ["file"] and len(words) == 2:
        return {"run": run, "file": words[1]}
    return {"run": run} if not words else None


def page_examples(page, text, quotes=None):
    """The examples of a page. Quoted parts of files are added to `quotes`: line, path and text of each.
    @error ValueError for an output block that does not follow an example."""
    found, last, declared = [], None, None
    quotes = [] if quotes is None else quotes
    for info, line, body, adjacent in blocks(text):
        words = info.split()
        if words[:1] == ["cpp"]:
            if words[1:2] == ["from"] and len(words) == 3:
                quotes.append((line, words[2], body))
                last = None
                continue
            if options(words[1:]) is None:
                raise ValueError(f"{page}:{line - 1}: `{info}`: cpp, cpp no-run, cpp file NAME or cpp from PATH")
            last = Example(page, line, body, **options(words[1:]))
            last.declared, declared = declared, last if last.only_declares() else None
            if mixes_fields(last):
                raise ValueError(f"{page}:{line - 1}: structs with MESHARD_FIELDS need a block of their own, "
                                 "before the statements")
            found.append(last)
        elif words[:1] == ["python"] and isinstance(last, Example) and adjacent and imports_meshard(body):
            pass  # the same program in Python: an output is that of both
        elif words[:2] == ["sh", "run"] or words[:1] == ["python"]:
            last = FOLLOWED
        elif words == ["text", "output"] and last is FOLLOWED and adjacent:
            last = None
        elif words == ["text", "output"]:
            if not isinstance(last, Example) or not adjacent:
                raise ValueError(f"{page}:{line - 1}: an output must directly follow an example")
            last.output = body
            last = None
        else:
            last = None
    return found


def imports_meshard(body):
    """Whether a block in Python is an example of meshard, and not of another library."""
    return re.search(r"^(import|from) meshard\b", body, re.MULTILINE) is not None


def python_examples(page, text):
    """The examples in Python of a page, which import meshard. @error ValueError for unknown words."""
    found, last = [], None
    for info, line, body, adjacent in blocks(text):
        words = info.split()
        if words[:1] == ["python"] and imports_meshard(body):
            if options(words[1:]) is None:
                raise ValueError(f"{page}:{line - 1}: `{info}`: python, python no-run or python file NAME")
            last = Example(page, line, body, **options(words[1:]))
            found.append(last)
        else:
            if words == ["text", "output"] and last is not None and adjacent:
                last.output = body
            last = None
    return found


def files_before(example, text):
    """Name and text of each `python file NAME` block of a page before an example."""
    for info, line, body, _ in blocks(text):
        words = info.split()
        if words[:2] == ["python", "file"] and len(words) > 2 and line < example.line:
            yield words[2], body + "\n"


def header_examples(page, text):
    found, lines, current = [], [], None
    for number, line in enumerate(text.splitlines(), 1):
        comment = re.match(r"\s*///? ?(.*)$", line)
        words = comment[1].split() if comment else []
        if words[:1] in (["@code"], ["@code{.cpp}"]):
            current = Example(page, number + 1, "", run="no-run" not in words)
            lines = []
        elif words[:1] == ["@endcode"] and current:
            current.text = "\n".join(lines)
            found.append(current)
            current = None
        elif current:
            if not comment:
                raise ValueError(f"{page}:{number}: @code without @endcode")
            lines.append(comment[1])
    return found


def collect(root):
    """All examples under `root`, page by page."""
    root = pathlib.Path(root)
    found = []
    for path in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]:
        page = path.relative_to(root)
        if path.is_file() and page.parts[:2] not in (("docs", "reference"), ("docs", "api"), ("docs", "python")):
            quotes = []
            found += page_examples(page, path.read_text(encoding="utf-8"), quotes)
            for line, name, text in quotes:
                if text not in (root / name).read_text(encoding="utf-8"):
                    raise ValueError(f"{page}:{line}: these lines are not in {name}")
    for path in sorted((root / "meshard").rglob("*.h")):
        if "internal" not in path.parts and not path.name.endswith("_testutil.h"):
            found += header_examples(path.relative_to(root), path.read_text(encoding="utf-8"))
    return found


def split_includes(text):
    """The include lines, and the text with these lines blanked, which keeps line numbers."""
    pattern = re.compile(r"^\s*#\s*include\s+.*$", re.MULTILINE)
    return [line.strip() for line in pattern.findall(text)], pattern.sub("", text)


def split_structs(text):
    """The structs that begin in the first column, and the text without them. Both keep their line numbers."""
    pattern = re.compile(r"^struct \w+ \{.*?^\};$", re.MULTILINE | re.DOTALL)
    structs, last = "", 0
    for match in pattern.finditer(text):
        structs += re.sub(r"[^\n]", "", text[last:match.start()]) + match[0]
        last = match.end()
    return structs, pattern.sub(lambda match: "\n" * match[0].count("\n"), text)


def mixes_fields(example):
    """Whether statements and structs with MESHARD_FIELDS are in one block without a main."""
    return "MESHARD_FIELDS" in example.text and not example.has_main() and not example.only_declares()


def as_function(example, root):
    """The example as `void run()` in its own namespace, after the structs that the page shows before it."""
    _, body = split_includes(example.text)
    where = f'#line 1 "{example.file}"' if example.file else f'#line {example.line} "{root / example.page}"'
    if not example.has_main():
        before = ""
        for declares in filter(None, (example.declared, example if example.only_declares() else None)):
            structs = split_includes(declares.text)[1]
            line = f'1 "{declares.file}"' if declares.file else f'{declares.line} "{root / declares.page}"'
            before += f"using namespace meshard;\n#line {line}\n{structs}\n"
        if example.only_declares():
            body = ""
        return f"{before}inline void run() {{\nusing namespace meshard;\n{where}\n{body}\n}}"
    # Only a function named main may end without a return.
    body = re.sub(r"^int main\(", "int example_main(", body, flags=re.MULTILINE)
    end = body.rstrip().rfind("}")
    body = body[:end] + "return 0;\n" + body[end:]
    call = "example_main()"
    if not re.search(r"^int example_main\(\s*\)", body, re.MULTILINE):
        call = 'example_main(1, const_cast<char**>(arguments))'
    return (f"{where}\n{body}\ninline void run() {{\n"
            f"[[maybe_unused]] const char* arguments[] = {{\"example\", nullptr}};\n"
            f'if ({call} != 0) throw std::runtime_error("main returned a failure");\n}}')


PRELUDE = """// Generated by tools/dev/doc_examples.py.
#include <meshard/meshard.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
"""

SUPPORT = """
namespace doc_examples {
// Lines of `expected` must be those of `actual`; `...` stands for any number of lines.
inline bool prints_as(const std::vector<std::string>& actual, std::size_t i,
                      const std::vector<std::string>& expected, std::size_t j) {
  if (j == expected.size()) return i == actual.size();
  if (expected[j] == "...")
    return prints_as(actual, i, expected, j + 1) ||
           (i < actual.size() && prints_as(actual, i + 1, expected, j));
  return i < actual.size() && actual[i] == expected[j] && prints_as(actual, i + 1, expected, j + 1);
}
inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out.push_back(line);
  }
  while (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}
template <class Run>
void check(Run run, const char* expected) {
  testing::internal::CaptureStdout();
  std::string problem;
  bool no_plugin = false;
  try {
    run();
  } catch (const meshard::Error& error) {
    problem = error.what();
    no_plugin = error.code() == meshard::ErrorCode::kNotFound &&
                problem.find("plugin") != std::string::npos;
  } catch (const std::exception& error) {
    problem = error.what();
  }
  std::cout.flush();
  std::string actual = testing::internal::GetCapturedStdout();
  if (no_plugin) GTEST_SKIP() << problem;
  if (!problem.empty()) FAIL() << problem << "\\nprinted:\\n" << actual;
  if (expected != nullptr && !prints_as(lines(actual), 0, lines(expected), 0))
    FAIL() << "the page says it prints:\\n" << expected << "\\nit prints:\\n" << actual;
}
}  // namespace doc_examples
"""


def generate(root):
    """The text of the test program."""
    root = pathlib.Path(root).resolve()
    examples = collect(root)
    includes = []
    for example in examples:
        includes += [line for line in split_includes(example.text)[0] if line not in includes]
        if example.page.suffix == ".h" and f'#include "{example.page}"' not in includes:
            includes.append(f'#include "{example.page}"')
    parts = [PRELUDE, "\n".join(includes), SUPPORT]
    for example in examples:
        name = example.name()
        parts.append(f"namespace {name} {{\n{as_function(example, root)}\n}}  // namespace {name}")
        if example.run and not example.only_declares():
            output = "nullptr" if example.output is None else f'R"output({example.output})output"'
            parts.append(f"TEST(DocExamples, {name}) {{ doc_examples::check({name}::run, {output}); }}")
        else:
            parts.append(f"[[maybe_unused]] static void (*const compiled_{name})() = {name}::run;")
    return "\n".join(parts) + "\n"


def first(found, what):
    for item in found:
        return item
    raise ValueError(f"the page has no {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--generate")
    parser.add_argument("--root", default=".")
    parser.add_argument("--program")
    parser.add_argument("--cmake")
    arguments = parser.parse_args()
    try:
        if arguments.generate:
            pathlib.Path(arguments.generate).write_text(generate(arguments.root), encoding="utf-8")
        elif arguments.program:
            found = page_examples(arguments.program, pathlib.Path(arguments.program).read_text(encoding="utf-8"))
            print(first((e.text for e in found if e.has_main()), "program with a main"))
        elif arguments.cmake:
            text = pathlib.Path(arguments.cmake).read_text(encoding="utf-8")
            print(first((b for i, _, b, _ in blocks(text) if i == "cmake"), "```cmake block"))
        else:
            parser.error("one of --generate, --program, --cmake")
    except ValueError as error:
        print(f"doc_examples: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
