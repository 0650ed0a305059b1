"""Operations on lists of tensors."""

import pytest

torch = pytest.importorskip("torch")

import meshard.torch as mt  # noqa: E402


def test_each_tensor_of_a_list():
    def f(x, y, scale):
        a, b = [x, y], [y + 1, x * 2]
        made = [torch._foreach_add(a, b, alpha=3), torch._foreach_mul(a, 2.5), torch._foreach_div(a, [2.0, 4.0]),
                torch._foreach_sub(a, 1.0), torch._foreach_neg(a), torch._foreach_sqrt(torch._foreach_abs(a)),
                torch._foreach_maximum(a, b), torch._foreach_minimum(a, 0.5), torch._foreach_lerp(a, b, 0.25),
                torch._foreach_pow(2.0, a), torch._foreach_addcmul(a, a, b, value=0.5),
                torch._foreach_addcdiv(a, a, [b[0] + 9, b[1] + 9], scale), torch._foreach_norm(a, 1),
                torch._foreach_mul(a, scale[0]), torch._foreach_norm(a, dtype=torch.float64)]
        torch._foreach_add_(a, 1.0)
        torch._foreach_copy_(b, a)
        return made, a, b, torch._foreach_max(a)

    torch.manual_seed(0)
    tensors = [torch.randn(3), torch.randn(3), torch.tensor([0.5, 2.0])]
    wanted, given = [each.clone() for each in tensors], [each.clone() for each in tensors]
    torch.testing.assert_close(mt.compile(f)(*given), f(*wanted))
    torch.testing.assert_close(given, wanted)
