"""Runs `meshard mesh` on chains of operations. Groups, coordinates and local ranks are those of PyTorch 2.15 for the same
chains (its groups are sorted: our `sorted`), or were computed by hand from the row-major order."""
import pathlib
import tempfile

from expectations import Checks

checks = Checks("mesh")


def prints(arguments, *parts):
    checks.prints(["--no-picture", *arguments], *parts)


# The mesh itself, in all of its text forms.
for text in ["mesh<data=2, model=4>", "data=2,model=4", " data = 2 , model = 4"]:
    prints([text], "mesh<data=2, model=4>\n", "axis data   2:4\n", "axis model  4:1\n", "8 devices in 1 row\n")
prints(["a=2,b=2", "--devices", "4,5,6,7"], "mesh<a=2, b=2; devices=[4,5,6,7]>")
prints(["a=2,b=4", "--devices", "0,2,...,14", "--rank", "10"], "coordinate (a=1, b=1)")
prints(["mesh<data=2:4 of mesh<data=2, model=4>>"], "2 devices in each of 4 rows", "root mesh<data=2, model=4>")

# Each operation. Axes are layouts of the root's 2 x 4 positions.
MESH = "data=2,model=4"
prints([MESH, "slice:model"], "slice:model\n", "axis model  4:1\n", "4 devices in each of 2 rows")
prints([MESH, "slice:model,data"], "axis model  4:1\n  axis data   2:4\n  8 devices in 1 row")
prints([MESH, "permute:model,data", "--groups", "model,data"], "0: [0,4,1,5,2,6,3,7]")
prints([MESH, "flatten"], "axis data_model  8:1\n", "names at the root: data_model = 8:1")
prints([MESH, "flatten:all"], "axis all  8:1\n")
prints(["a=2,b=3,c=4", "flatten:a+c=ac"], "axis ac  (2,4):(12,1)\n", "axis b   3:4\n")
prints([MESH, "unflatten:model:x=2,y=2"], "axis data  2:4\n  axis x     2:2\n  axis y     2:1\n")
prints([MESH, "reshape:a=4,b=2"], "axis a  4:2\n  axis b  2:1\n")
prints([MESH, "rename:data=dp,model=tp"], "axis dp  2:4\n  axis tp  4:1\n")
prints(["a=1,b=2", "squeeze"], "squeeze\nmesh<b=2>\n")
prints(["a=1,b=1,c=2", "squeeze:b"], "squeeze:b\nmesh<a=1, c=2>\n")
prints(["a=2,b=2", "unsqueeze:one@1"], "mesh<a=2, one=1, b=2>", "axis one  ():()\n")
prints([MESH, "submesh:model@5"], "mesh<model=4; devices=[4,5,6,7]>", "4 devices in 1 row, root mesh<data=2, model=4>")
prints([MESH, "submesh:model@5", "as_root"], "as_root\nmesh<model=4; devices=[4,5,6,7]>\n  axis model  4:1\n  4 devices in 1 row\n")
prints([MESH, "slice:model", "root"], "root\nmesh<data=2, model=4>\n")
prints([MESH, "submesh:model@5", "base", "slice:model"], "base\nmesh<model=4; devices=[4,5,6,7]>\n")
prints([MESH, "flatten:all", "unflatten:all:x=4,y=2", "slice:y"], "slice:y\nmesh<y=2:1 of mesh<data=2, model=4>>\n")

# Groups. Rank 3 of [[7,6],[5,4],[3,2],[1,0]]: coordinate (2,0), local ranks in the sorted groups 1
# and 1.
REVERSED = ["a=4,b=2", "--devices", "7,6,5,4,3,2,1,0"]
prints([*REVERSED, "--rank", "3"], "device 3: position 4, row 0 of 1, coordinate (a=2, b=0)",
       "along a: group [7,5,3,1], local rank 2, sorted 1", "along b: group [3,2], local rank 0, sorted 1")
prints([*REVERSED, "slice:a", "--rank", "3"], "position 2, row 0 of 2, coordinate (a=2)", "along a: group [7,5,3,1]")
prints([*REVERSED, "--groups", "b"], "groups along b: 4 of 2 devices", "0: [7,6]\n  1: [5,4]\n  2: [3,2]\n  3: [1,0]\n")
prints([*REVERSED, "flatten", "--rank", "0"], "along a_b: group [7,6,5,4,3,2,1,0], local rank 7, sorted 0")
prints(["a=2,b=2", "--devices", "10,20,30,47", "--groups", "a", "--rank", "47"], "0: [10,30]\n  1: [20,47]\n",
       "coordinate (a=1, b=1)", "along a: group [20,47], local rank 1, sorted 1")
# The compact form uses positions: 2 x 4, read by columns.
prints([MESH, "--groups", "data"], "groups along data: 4 of 2 devices\n  compact [4,2]<=[2,4]T(1,0)\n"
       "  0: [0,4]\n  1: [1,5]\n  2: [2,6]\n  3: [3,7]\n")
prints([MESH, "--groups", "model"], "compact [2,4]<=[8]\n  0: [0,1,2,3]\n  1: [4,5,6,7]\n")
prints([MESH, "slice:model", "--groups", "model"], "compact [2,4]<=[8]\n  0: [0,1,2,3]\n  1: [4,5,6,7]\n")
prints(["a=2,b=3,c=4", "--groups", "a,c", "--rank", "17"], "0: [0,1,2,3,12,13,14,15]", "coordinate (a=1, b=1, c=1)",
       "along a,c: group [4,5,6,7,16,17,18,19], local rank 5, sorted 5")
prints([MESH, "--rank", "9"], "device 9 is not in the mesh\n")
prints([MESH, "submesh:model@5", "--rank", "1,6"], "device 1 is not in the mesh\n", "device 6: position 2,")
# A million devices are not slow, and long output is abbreviated.
prints(["dp=16384,tp=64", "slice:tp", "--groups", "tp", "--rank", "1000000"], "64 devices in each of 16384 rows",
       "31: [1984,", "  and 16352 more\n", "position 0, row 15625 of 16384, coordinate (tp=0)")

prints([MESH, "--shardy"], 'sdy.mesh @mesh = <["data"=2, "model"=4]>\n')
prints([MESH, "permute:model,data", "--shardy"],
       'sdy.mesh @mesh = <["model"=4, "data"=2], device_ids=[0, 4, 1, 5, 2, 6, 3, 7]>\n')

checks.prints([MESH, "slice:model"],
              "row 0 of 2\n"
              "  model →\n"
              "┌───┬───┬───┬───┐\n"
              "│ 0 │ 1 │ 2 │ 3 │\n"
              "└───┴───┴───┴───┘\n"
              "row 1 of 2\n")
checks.prints(["a=4096,b=4096"], "16777216 devices are too many for a picture")
with tempfile.TemporaryDirectory() as folder:
    svg = pathlib.Path(folder) / "a.svg"
    prints([MESH, "--groups", "model", "--svg", str(svg)])
    text = svg.read_text(encoding="utf-8") if svg.exists() else ""
    checks.check("a color for each of the 2 groups of 4", text.count("hsl(0,") == 4 and text.count("hsl(137,") == 4)

checks.refuses([MESH, "slice:tp"], 'no axis "tp"', "data, model")
checks.refuses([MESH, "slice"], "expected `:` at character 5 of `slice`")
checks.refuses([MESH, "slices:a"], "unknown step `slices`")
checks.refuses([MESH, "slice:model x"], "unexpected text")
checks.refuses([MESH, "permute:data"], "permute needs every axis")
checks.refuses([MESH, "flatten:data+model"], "expected `=`")
checks.refuses([MESH, "flatten:data"], '"data" is an axis of the root')
checks.refuses([MESH, "unflatten:model:x=3,y=2"], "parts of 6 positions cannot replace the 4")
checks.refuses([MESH, "submesh:model@8"], "device 8 is not in mesh<data=2, model=4>")
checks.refuses([MESH, "slice:model", "as_root"], "2 rows")
checks.refuses([MESH, "squeeze:data"], "only axes of size 1")
checks.refuses([MESH, "unsqueeze:one@-1"], "the place must be at least 0")
checks.refuses([MESH, "--groups", "tp"], 'no axis "tp"')
checks.refuses(["data=2,"], "expected a name at character 7")
checks.refuses(["mesh<data=2"], "[parse mesh]")
checks.refuses(["data=2,data=2"], "used twice")
checks.refuses(["data=0"], "it must be at least 1")
checks.refuses(["data=2", "--devices", "4"], "1 device ids for 2 positions")
checks.refuses(["data=2", "--devices", "4,4"], "listed twice")
checks.refuses(["data=2", "--devices", "4,x"], "[parse devices]")
code, _, _ = checks.run()
checks.check("without a mesh", code not in (0, 1))
checks.end()
