"""Runs `meshard torus`. Hops are counted by hand on the grids, or are those of the device orders recorded from JAX 0.10."""
from expectations import Checks

checks = Checks("torus")


def prints(arguments, *parts):
    checks.prints(["--no-picture", *arguments], *parts)


# A ring of single hops through 8 x 8 chips. JAX's order has 1.97 hops on average, and 14 back from
# the corner.
prints(["v5e:8x8", "--shape", "64", "--assigned"], "64 devices, TPU v5 lite, 8 x 8 x 1 chips, open\n",
       "hops in rings      axis_0 1 (worst 1)\n", "hops as assigned   axis_0 1.969 (worst 14)\n")
prints(["v5p:4x4x4", "--shape", "data=16,model=4"], "4 x 4 x 4 chips, closed in x, y, z\n",
       "data 1 (worst 1), model 1 (worst 1)\n")
prints(["v3:2x2", "--shape", "8"], "where the grid closes is not known\n", "axis_0 0.5 (worst 1)\n")
prints(["v5e:4x4*2", "--shape", "2x16"], "32 devices, TPU v5 lite, 2 slices of 4 x 4 x 1 chips",
       "axis_0 0 (worst 0, 16 between slices), axis_1 1 (worst 1)\n")
prints(["v5e:4x4*2", "--shape", "2x16", "--outer", "1x2"], "axis_0 1 (worst 1), axis_1 1.143 (worst 2, 4 between slices)\n")  # 7 steps with 8 hops
checks.prints(["v5e:2x2", "--shape", "x=4"], "x →", "│ 0 │")
checks.prints(["v5p:16x16x32", "--shape", "8192"], "8192 devices are too many for a picture")

checks.refuses(["v5e:8x8", "--shape", "63"], "needs 63 devices, but there are 64")
checks.refuses(["v5e:8x8", "--shape", "8x"], "expected a whole number")
checks.refuses(["v7:8x8", "--shape", "64"], "unknown TPU type `v7`", "v2, v3, v4, v5e, v5p, v6e, tpu7x")
checks.refuses(["v5e:2x2*2", "--shape", "8", "--outer", "3"], "does not divide 8")
checks.end()
