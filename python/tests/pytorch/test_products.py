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


@pytest.mark.parametrize("b_shape", [(16, 8), (16,)], ids=str)
def test_scaled_products_with_summands_are_rounded_once(b_shape):
    generator = torch.Generator().manual_seed(0)
    c, a, b = (torch.randn(shape, generator=generator).bfloat16() for shape in ((8,), (8, 16), b_shape))
    operation = torch.addmm if len(b_shape) == 2 else torch.addmv
    exact = operation(c.double(), a.double(), b.double(), beta=-4.775, alpha=2.0315)
    got = mt.compile(lambda c, a, b: operation(c, a, b, beta=-4.775, alpha=2.0315))(c, a, b)
    assert ((got - exact).abs() <= 0.51 * torch.finfo(torch.bfloat16).eps * exact.abs() + 1e-5).all()
