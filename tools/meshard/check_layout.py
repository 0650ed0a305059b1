"""Runs `meshard layout` on expressions with values computed by hand."""
import pathlib
import tempfile

from expectations import Checks

checks = Checks("layout")


def gives(expression, layout, values=None):
    """Expects the layout and its values, which are listed here from the definition."""
    code, out, err = checks.run(expression, "--no-picture", "--values")
    lines = dict(line.split(None, 1) for line in out.splitlines())
    checks.check(f"{expression} = {layout}", code == 0 and lines.get("layout") == layout, out + err)
    if values is not None:
        found = [int(text) for text in lines.get("values", "").split()]
        checks.check(f"values of {expression}", found == list(values), out + err)


def facts(expression, **wanted):
    _, out, _ = checks.run(expression, "--no-picture")
    lines = dict(line.split(None, 1) for line in out.splitlines())
    for name, value in wanted.items():
        checks.check(f"{name} of {expression}", lines.get(name) == value, out)


# Composition: i -> A(B(i)). A = (2,4):(1,2) has the values 0 2 4 6 1 3 5 7; those at indices 0 and
# 4 are the multiples of 4.
gives("(2,4):(1,2) o 2:4", "2:1", [0, 1])
gives("(2,4):(1,2) o (2,2)", "(2,2):(4,2)", [0, 2, 4, 6])
gives("(2,4):(1,2) ∘ 8", "(2,4):(1,2)", [0, 2, 4, 6, 1, 3, 5, 7])
# Right-associative: 8:2 o (4:2 o 2:1) = 2:4, values 8(4(i)).
gives("8:2 o 4:2 o 2:1", "2:4", [0, 4])
gives("(8:2 o 4:2) o 2:1", "2:4", [0, 4])
gives("(4,6):(6,1) o <2, 3:2>", "(2,3):(6,2)", [0, 2, 4, 6, 8, 10])
gives("composition((4,6):(6,1), <2, 3:2>)", "(2,3):(6,2)", [0, 2, 4, 6, 8, 10])
# Calls.
for call, value in [("(2,4):(4,1)(1,2)", 6), ("(2,4):(1,2)(5)", 3), ("(2,(2,3)):(6,(3,1))(1,(1,2))", 11),
                    ("((2,4):(1,2) o (2,2))(3)", 6), ("(2,4)(7)", 7)]:
    code, out, _ = checks.run(call)
    checks.check(f"{call} = {value}", code == 0 and out == f"{value}\n", out)
gives("(2,4):(1,2)(_,2)", "(2):(1)", [4, 5])
facts("(2,4):(1,2)(_,2)", offset="4", size="2", cosize="2")
# Functions.
gives("coalesce((2,1,3):(3,7,1))", "6:1", range(6))
gives("coalesce((2,(2,2)):(4,(2,1)), (1,1))", "(2,4):(4,1)", range(8))
gives("filter((2,3):(0,5))", "3:5", [0, 5, 10])
gives("flatten((2,(2,3)):(6,(3,1)))", "(2,2,3):(6,3,1)", range(12))
gives("complement(2:1, 8)", "4:2", [0, 2, 4, 6])
gives("complement(2:4, 16)", "(2,4):(8,1)", [0, 1, 2, 3, 8, 9, 10, 11])
gives("right_inverse((2,4):(1,2))", "(4,2):(1,4)", [0, 4, 1, 5, 2, 6, 3, 7])
gives("left_inverse((2,4):(1,2)) o (2,4):(1,2)", "(2,4):(4,1)", range(8))
gives("logical_divide(8, 2)", "(2,4):(1,2)", [0, 2, 4, 6, 1, 3, 5, 7])
tiles = [6 * i + k + 12 * j + 3 * l for i in range(2) for k in range(3) for j in range(2) for l in range(2)]
gives("zipped_divide((4,6), <2, 3>)", "((2,3),(2,2)):((6,1),(12,3))", tiles)
gives("tiled_divide((4,6), <2, 3>)", "((2,3),2,2):((6,1),12,3)", tiles)
gives("logical_product(2, 3:1)", "(2,3):(1,2)", [0, 2, 4, 1, 3, 5])
# The complement of 2:4 up to 4 is 4:1; that of 2:1 up to 6 is 3:2.
copies = [4 * i + k + j + 2 * l for i in range(2) for k in range(2) for j in range(2) for l in range(3)]
gives("zipped_product((2,2):(4,1), <2:1, 3:1>)", "((2,2),(2,3)):((4,1),(1,2))", copies)
gives("tiled_product((2,2):(4,1), <2:1, 3:1>)", "((2,2),2,3):((4,1),1,2)", copies)
gives("permute((2,3), 1, 0)", "(3,2):(1,3)", [0, 3, 1, 4, 2, 5])
gives("concatenate(2:8, (2,2))", "(2,(2,2)):(8,(2,1))", [0, 1, 2, 3, 8, 9, 10, 11])
gives("from_values(0, 4, 1, 5)", "(2,2):(1,4)", [0, 4, 1, 5])
gives("8", "8:1", range(8))
gives("()", "():()", [0])
# (3,2):(2,3) has the values 0 3 2 5 4 7: each value once, but the modes interlock. (2,2):(1,1) has
# 1 twice.
facts("(3,2):(2,3)", injective="yes", orthogonal="no", size="6", cosize="8")
facts("(2,2):(1,1)", injective="no", orthogonal="no", size="4", cosize="3")
facts("(2,4):(4,1)", injective="yes", orthogonal="yes")

checks.prints(["(2,3):(1,2)"],
              "        3:2 →\n"
              "      ┌───┬───┬───┐\n"
              "2:1 ↓ │ 0 │ 2 │ 4 │\n"
              "      ├───┼───┼───┤\n"
              "      │ 1 │ 3 │ 5 │\n"
              "      └───┴───┴───┘\n")
_, out, _ = checks.run("(64,64)")
checks.check("4096 values are drawn", "4095" in out)
_, out, _ = checks.run("(64,65)")
checks.check("4160 values are not", "size        4160" in out and "│" not in out, out)
with tempfile.TemporaryDirectory() as folder:
    svg = pathlib.Path(folder) / "a.svg"
    checks.run("(2,3)", "--svg", str(svg))
    text = svg.read_text(encoding="utf-8") if svg.exists() else ""
    checks.check("an SVG image", text.startswith("<svg ") and ">5</text>" in text)
    checks.refuses(["(64,65)", "--svg", str(svg)], "4160 values")
    checks.refuses(["2", "--svg", f"{folder}/none/a.svg"], "cannot write")

# Errors have a location: a position in the text, or the part whose operation failed.
checks.refuses(["(3,4):(100,1) o 6:1"], "[composition]", "in `(3,4):(100,1) o 6:1`")
checks.refuses(["2 o complement((4,2):(1,1), 8)"], "[complement]", "in `complement((4,2):(1,1), 8)`")
checks.refuses(["(2,4):(4)"], "nesting", "in `(2,4):(4)`")
checks.refuses(["coalesce((2,4)"], "expected `)`", "at character 14")
checks.refuses(["(2,4) o"], "expected a layout", "at character 7")
checks.refuses([""], "expected a layout")
checks.refuses(["foo(3)"], "unknown function `foo`")
checks.refuses(["(" * 1000], "nested too deeply")
checks.refuses(["8 8"], "unexpected text", "at character 2")
checks.refuses(["complement(2)"], "complement takes 2 arguments, not 1")
checks.refuses(["permute((2,3), 1, 1)"], "[permute]")
checks.refuses(["complement(2, (2,2))"], "expected an integer")
checks.refuses(["from_values(0, 4, 1, 6)"], "no layout has these values")
checks.refuses(["coalesce((2,2):(1,2)(_,1))"], "can only be the final result")
checks.refuses(["8(3)(1)"], "not a layout")
checks.refuses(["(0,2)"], "[layout]")
code, _, _ = checks.run()
checks.check("without an expression", code not in (0, 1))
checks.end()
