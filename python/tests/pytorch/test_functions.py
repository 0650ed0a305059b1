"""Functions of PyTorch that read elements, which programs compute without."""

import copy

import pytest

torch = pytest.importorskip("torch")

import meshard.torch as mt  # noqa: E402


def test_functions_equal_those_of_pytorch():
    functional = torch.nn.functional

    def values(x, weights, variances, probabilities, classes, labels):
        return (torch.cov(x), x.cov(correction=0, aweights=weights), torch.cov(x, fweights=labels), x.corrcoef(),
                functional.gaussian_nll_loss(x, x.sin(), variances),
                functional.ctc_loss(probabilities, classes, [5, 4], [3, 2]),
                functional.multilabel_margin_loss(x[0], labels, reduction="none"))

    torch.manual_seed(0)
    inputs = (torch.randn(3, 4), torch.rand(4), torch.rand(3, 1), torch.randn(5, 2, 6).log_softmax(2),
              torch.randint(1, 6, (2, 3)), torch.tensor([3, 0, 1, 2]))
    for got, wanted in zip(mt.compile(values)(*inputs), values(*inputs), strict=True):
        torch.testing.assert_close(got, wanted)


def test_cumulative_averages_of_batches():
    plain = torch.nn.BatchNorm1d(3, momentum=None)
    module = copy.deepcopy(plain)
    compiled = mt.compile(module)
    for seed in range(3):
        x = torch.randn(8, 3, generator=torch.Generator().manual_seed(seed)) + seed
        torch.testing.assert_close(compiled(x), plain(x))
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(module.state_dict()[name] + 0, value, msg=name)


def test_invalid_arguments_are_errors():
    x = torch.ones(3, 4)
    for call, text in ((lambda x: torch.cov(x, aweights=x), "weights"),
                       (lambda x: torch.nn.functional.gaussian_nll_loss(x, x, x[:2]), "incorrect size")):
        with pytest.raises((RuntimeError, ValueError), match=text):
            mt.compile(call)(x)
