"""Products whose operands are groups."""

import pytest

torch = pytest.importorskip("torch")

import meshard.torch as mt  # noqa: E402


@pytest.mark.parametrize("shape_a, shape_b, ends", [((6, 16), (3, 16, 8), [2, 2, 6]), ((3, 4, 16), (3, 16, 8), None),
                                                    ((8, 16), (16, 8), [8, 8, 16]), ((3, 8, 16), (16, 8), [2, 2, 8])])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_groups(shape_a, shape_b, ends, dtype):
    torch.manual_seed(0)
    a, b = torch.randn(shape_a, dtype=dtype), torch.randn(shape_b, dtype=dtype)
    ends = None if ends is None else torch.tensor(ends, dtype=torch.int32)
    results = []
    for function in (torch._grouped_mm, mt.compile(torch._grouped_mm)):
        x, y = (each.clone().requires_grad_() for each in (a, b))
        made = function(x, y, ends)
        made.float().square().sum().backward()
        results.append([made.detach(), x.grad, y.grad])
    torch.testing.assert_close(results[1], results[0], rtol=2e-2 if dtype == torch.bfloat16 else 1e-4, atol=1e-3)
