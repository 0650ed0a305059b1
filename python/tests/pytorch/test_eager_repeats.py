"""Operations that are called alike again and again: what they recorded first must not be what they compute later."""

import pytest

torch = pytest.importorskip("torch")

from torch.autograd import forward_ad  # noqa: E402

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard.torch.eager._repeats import repeating  # noqa: E402
from meshard.torch.eager._tensors import wrap  # noqa: E402

F, DEVICE = torch.nn.functional, mt.device()


def checked(function, *calls, times=4):
    """Compares calls in turns, each several times, with the CPU."""
    for turn in range(times):
        for call in calls:
            torch.manual_seed(turn)
            given = [each(turn) if callable(each) else each for each in call]
            on_device = [each.to(DEVICE) if isinstance(each, torch.Tensor) else each for each in given]
            torch.testing.assert_close(function(*on_device).cpu(),
                                       function(*given), equal_nan=True)


def rows(turn):
    return torch.arange(6.0).reshape(2, 3) + turn


def test_numbers_of_each_kind_are_told_apart():
    x = torch.arange(-3, 3)
    checked(torch.add, (x, 1), (x, True), (x, 1.0), (x, 2), (x.bool(), 1), (x.bool(), True))
    checked(lambda x, number: 1 / (x * number), (rows, 0.0), (rows, -0.0))
    checked(lambda x, y, w: torch.lerp(x, y, w), (rows, torch.ones(2, 3), 0.25), (rows, torch.ones(2, 3), 0.75))
    checked(torch.addcmul, (rows, torch.ones(2, 3), torch.ones(3)), (rows, torch.ones(3), torch.ones(2, 3)))


def test_tensors_that_are_the_same_are_told_apart():
    x, y = torch.randn(2, 3).to(DEVICE), torch.randn(2, 3).to(DEVICE)
    for _ in range(4):
        for a, b, c in ((x, x, x), (x, y, x), (x, x, y), (y, x, x)):
            torch.testing.assert_close(torch.addcdiv(a, b, c).cpu(), torch.addcdiv(a.cpu(), b.cpu(), c.cpu()))


def test_the_default_dtype_counts():
    x = torch.arange(1, 7).to(DEVICE)
    try:
        for dtype in (torch.float32, torch.float32, torch.float64, torch.float64, torch.float32) * 2:
            torch.set_default_dtype(dtype)
            assert (x / x).dtype == torch.mean(x, dtype=dtype).dtype == torch.sqrt(x).dtype == dtype
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_arguments_are_views_of_counts():
    made = repeating(lambda args, kwargs: args[0] - args[1].t(), with_views=True)
    x, y, z = (torch.randn(3, 3).to(DEVICE) for _ in range(3))
    for _ in range(4):
        for a, b in ((x, x), (y, z), (y, y), (z, x)):
            found = made((a, b.t()), {})
            found = wrap(found) if isinstance(found, ms.Tensor) else found
            torch.testing.assert_close(found.cpu(), a.cpu() - b.cpu())


def test_strides_count():
    x = torch.randn(3, 3)
    checked(lambda x: torch.addcmul(x, x, x), (x,), (x.t(),), (x[::2],))
    for _ in range(4):
        assert torch.lerp(x.to(DEVICE).t(), x.to(DEVICE).t(), 0.5).stride() == torch.lerp(x.t(), x.t(), 0.5).stride()


@pytest.mark.parametrize("draw", (
    lambda x: F.dropout(x), lambda x: torch.rand_like(x), lambda x: F.rrelu(x - 3, training=True),
    lambda x: torch.bernoulli(torch.full_like(x, 0.5)), lambda x: x.clone().normal_(), lambda x: F.gumbel_softmax(x)))
def test_random_numbers_are_new_each_time(draw):
    x = torch.randn(100).to(DEVICE)
    drawn = [draw(x).cpu() for _ in range(6)]
    assert len({tuple(each.tolist()) for each in drawn}) == 6


def test_elements_that_decide_are_read_each_time():
    checked(lambda x: F.one_hot(x), (lambda turn: torch.tensor([0, turn]),))
    checked(lambda x, n: x.repeat_interleave(n), (rows, lambda turn: torch.tensor([1 + turn, 2] * 3)))
    checked(lambda x: x[x > 4], (rows,))
    checked(lambda x: torch.linalg.matrix_rank(torch.diag(x)), (lambda turn: torch.arange(4.0) - turn,))
    checked(lambda x, scale: x * scale.item(), (rows, lambda turn: torch.tensor(1.0 + turn)))
    checked(lambda x, scale: x * scale, (rows, lambda turn: torch.tensor(1.0 + turn)))


def test_writes_do_not_change_what_was_recorded():
    x = torch.zeros(2, 3).to(DEVICE)
    copies = []
    for _ in range(5):
        y = F.silu(x)
        x.add_(1)
        copies.append((y, x.clone()))
    for i, (y, x) in enumerate(copies):
        torch.testing.assert_close(y.cpu(), F.silu(torch.full((2, 3), float(i))))
        assert x.tolist() == [[i + 1.0] * 3] * 2


@pytest.mark.parametrize("optimizer", (torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop))
@pytest.mark.parametrize("foreach", (False, True))
def test_a_loop_with_a_schedule_equals_the_cpu_and_compiles_two_programs(optimizer, foreach):
    def losses(device):
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).to(device)
        x, y = torch.randn(16, 6).to(device), torch.randint(0, 3, (16,)).to(device)
        made = optimizer(net.parameters(), lr=0.05, weight_decay=0.01, foreach=foreach)
        schedule = torch.optim.lr_scheduler.ExponentialLR(made, 0.9)
        found, compiles = [], []
        for _ in range(8):
            before = ms.runtime_counters().compiles
            made.zero_grad()
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            made.step()
            schedule.step()
            found.append(loss.item())
            compiles.append(ms.runtime_counters().compiles - before)
        return found, compiles

    found, compiles = losses(DEVICE)
    torch.testing.assert_close(torch.tensor(found), torch.tensor(losses("cpu")[0]), rtol=1e-4, atol=1e-5)
    assert sum(compiles[2:]) == 0 and sum(compiles) <= 2


def _dual(function, x):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(x, 2 * x))).tangent


def _second(function, x):
    x = x.clone().requires_grad_()
    first, = torch.autograd.grad(function(x).sum(), x, create_graph=True)
    return torch.autograd.grad(first.cos().sum(), x)[0]


@pytest.mark.parametrize("shape", ((4, 4), (2, 5, 4), (4,)))
@pytest.mark.parametrize("bias", (torch.randn(3), None))
@pytest.mark.parametrize("transform", (
    lambda f, x: f(x), _dual, _second, lambda f, x: torch.func.jvp(f, (x,), (x,))[1],
    lambda f, x: torch.func.jacrev(f)(x), lambda f, x: torch.func.jacfwd(f)(x),
    lambda f, x: torch.func.vmap(f, out_dims=-1)(torch.stack([x, 2 * x])),
    lambda f, x: torch.autograd.functional.jacobian(f, x, vectorize=True),
    lambda f, x: torch.func.vmap(torch.func.grad(lambda x: f(x).sum()))(torch.stack([x, 2 * x]))))
def test_linear_is_one_operation_under_each_transformation(transform, shape, bias):
    x, w = torch.randn(shape), torch.randn(3, 4)
    of_x = transform(lambda x: F.linear(x, w, bias).sin(), x)
    of_w = transform(lambda w: F.linear(x, w, bias).sin(), w)
    x, w, bias = [None if each is None else each.to(DEVICE) for each in (x, w, bias)]
    torch.testing.assert_close(transform(lambda x: F.linear(x, w, bias).sin(), x).cpu(), of_x, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(transform(lambda w: F.linear(x, w, bias).sin(), w).cpu(), of_w, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("frozen", range(4))
def test_linear_differentiates_what_asks_for_it(frozen):
    def gradients(device):
        torch.manual_seed(1)
        given = [torch.randn(shape).to(device).requires_grad_(i != frozen)
                 for i, shape in enumerate(((2, 5, 4), (3, 4), (3,)))]
        made = F.linear(*given)
        assert device == "cpu" or type(made.grad_fn).__name__ == "LinearBackward0"
        made.square().sum().backward()
        return [each.grad is not None and each.grad.cpu() for each in given]

    for made, expected in zip(gradients(DEVICE), gradients("cpu"), strict=True):
        torch.testing.assert_close(made, expected, rtol=1e-4, atol=1e-4)
