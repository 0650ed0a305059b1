"""Random operations of compiled PyTorch functions: distributions, seeds, and masks that the backward pass reuses."""

import math

import pytest

torch = pytest.importorskip("torch")

import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402

COUNT = 20000


def drawn(function, *args):
    torch.manual_seed(5)
    return mt.compile(function)(*args)


def like(dtype=torch.float32):
    return torch.zeros(COUNT, dtype=dtype)


# Function, mean, standard deviation.
MOMENTS = {
    "rand": (lambda x: torch.rand(COUNT) + x, 0.5, math.sqrt(1 / 12)),
    "rand_like": (lambda x: torch.rand_like(x), 0.5, math.sqrt(1 / 12)),
    "randn": (lambda x: torch.randn(COUNT) + x, 0, 1),
    "randn_like": (lambda x: torch.randn_like(x), 0, 1),
    "normal_": (lambda x: x.clone().normal_(2, 3), 2, 3),
    "normal of tensors": (lambda x: torch.normal(x + 1, x + 2), 1, 2),
    "uniform_": (lambda x: x.clone().uniform_(-1, 3), 1, 4 * math.sqrt(1 / 12)),
    "bernoulli": (lambda x: torch.bernoulli(x + 0.25), 0.25, math.sqrt(0.25 * 0.75)),
    "bernoulli_": (lambda x: x.clone().bernoulli_(0.25), 0.25, math.sqrt(0.25 * 0.75)),
    "exponential_": (lambda x: x.clone().exponential_(2), 0.5, 0.5),
    "geometric_": (lambda x: x.clone().geometric_(0.25), 4, math.sqrt(0.75) / 0.25),
    "log_normal_": (lambda x: x.clone().log_normal_(0.5, 0.25), math.exp(0.5 + 0.25 ** 2 / 2),
                    math.exp(0.5 + 0.25 ** 2 / 2) * math.sqrt(math.expm1(0.25 ** 2))),
    "randint": (lambda x: torch.randint(3, 11, (COUNT,)) + x, 6.5, math.sqrt((64 - 1) / 12)),
    "poisson": (lambda x: torch.poisson(x + 4), 4, 2),
    "multinomial": (lambda x: torch.multinomial(torch.tensor([1.0, 0.0, 3.0]), COUNT, True) + x, 1.5,
                    math.sqrt(0.75)),
    "gamma": (lambda x: torch._standard_gamma(x + 4), 4, 2),
    "dropout": (lambda x: torch.nn.functional.dropout(x + 1, 0.75), 1, math.sqrt(3)),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_are_those_of_the_distribution(name):
    function, mean, deviation = MOMENTS[name]
    made = drawn(function, like()).double()
    assert made.shape == (COUNT,)
    # Five standard errors of the mean; the variance of these distributions varies little.
    assert abs(made.mean() - mean) < 5 * deviation / math.sqrt(COUNT)
    assert made.std() == pytest.approx(deviation, rel=0.05)


def test_quartiles_of_cauchy():
    made = drawn(lambda x: x.clone().cauchy_(1, 2), like())
    assert made.quantile(torch.tensor([0.25, 0.5, 0.75])).tolist() == pytest.approx([-1, 1, 3], abs=0.15)


def test_permutations_and_samples_without_replacement_have_each_element_once():
    made = drawn(lambda x: torch.randperm(100), like())
    assert made.dtype == torch.int64 and made.sort().values.tolist() == list(range(100)) != made.tolist()
    made = drawn(lambda x: torch.multinomial(torch.tensor([[1.0, 2, 0, 3]]).expand(50, 4), 3), like())
    assert all(sorted(row) == [0, 1, 3] for row in made.tolist())


def test_calls_differ_and_a_seed_repeats_them():
    f = mt.compile(lambda x: (torch.randn_like(x), torch.randn_like(x)))
    torch.manual_seed(1)
    first, second = f(like()), f(like())
    torch.manual_seed(1)
    again = f(like())
    assert not torch.equal(first[0], first[1]) and not torch.equal(first[0], second[0])
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])


def test_values_are_the_same_on_every_mesh(mesh):
    def draws(layer, x):
        h = torch.nn.functional.dropout(layer(x), 0.25)
        return h, torch.randn_like(h), torch.multinomial(h.abs() + 1, 4)

    torch.manual_seed(0)
    layer, x = torch.nn.Linear(8, 16), torch.randn(4, 8)
    torch.manual_seed(3)
    on_one = mt.compile(lambda x: draws(layer, x))(x)
    sharded = torch.nn.Linear(8, 16)
    sharded.load_state_dict(layer.state_dict())

    class Draws(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = sharded

        def forward(self, x):
            return draws(self.layer, x)

    model = Draws()
    mt.shard(model, mesh, {"*.weight": P("model", "data"), "*.bias": P("model")})
    torch.manual_seed(3)
    on_mesh = mt.compile(model)(x)
    for one, other in zip(on_one, on_mesh, strict=True):
        torch.testing.assert_close(other.detach(), one.detach())


def test_the_backward_pass_uses_the_mask_of_the_forward_pass():
    x = torch.ones(1000, requires_grad=True)
    y = mt.compile(lambda x: torch.nn.functional.dropout(x, 0.5))(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    assert set(y.tolist()) == {0, 2}


def test_a_checkpointed_region_draws_the_same_mask_again():
    from torch.utils.checkpoint import checkpoint

    w = torch.rand(1000, requires_grad=True)
    region = lambda w: torch.nn.functional.dropout(w.sin().cos() * w, 0.5)
    y = mt.compile(lambda w: checkpoint(region, w, use_reentrant=False))(w)
    y.sum().backward()
    assert torch.equal(w.grad == 0, y == 0)


def test_a_generator_is_refused():
    generator = torch.Generator()
    with pytest.raises(Exception, match="enerator"):
        mt.compile(lambda x: torch.randn(3, generator=generator) + x)(torch.ones(3))


def test_integers_written_in_place():
    def f(x):
        return torch.zeros(64, dtype=torch.long).random_(5, 9), x.new_zeros(64).random_(7)

    low, high = mt.compile(f)(torch.zeros(1))
    assert set(low.tolist()) == {5, 6, 7, 8} and set(high.tolist()) == set(range(7))


def test_distributions_are_compiled():
    def policy(mean, spread, logits, action):
        normal = torch.distributions.Normal(mean, spread)
        chosen = torch.distributions.Independent(torch.distributions.Categorical(logits=logits), 1)
        return normal.log_prob(mean + 1).sum() + chosen.log_prob(action), chosen.entropy()

    generator = torch.Generator().manual_seed(0)
    args = (torch.randn(4, generator=generator), torch.rand(4, generator=generator) + 0.5,
            torch.randn(2, 3, 5, generator=generator), torch.randint(0, 5, (2, 3), generator=generator))
    torch.distributions.Distribution.set_default_validate_args(True)
    for got, wanted in zip(mt.compile(policy)(*args), policy(*args), strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="satisfy the constraint"):  # PyTorch itself still checks
        torch.distributions.Normal(args[0], -args[1])
    samples = drawn(lambda mean: torch.distributions.Normal(mean, 2.0).rsample(), torch.full((COUNT,), 3.0))
    assert abs(float(samples.mean()) - 3) < 0.1 and abs(float(samples.std()) - 2) < 0.1


def test_distributions_that_are_told_to_check_elements_are_errors():
    with pytest.raises(ValueError, match="a decision in Python depends on the elements"):
        mt.compile(lambda x: torch.distributions.Normal(x, 1.0, validate_args=True).log_prob(x))(torch.ones(2))
