"""Optimizers: Sgd, Adam, AdamW, and those that are transforms of gradients, with their chains, groups and wrappers."""

import dataclasses
import typing

from ._meshard import Tensor
from ._meshard import optim as _optim
from ._meshard.optim import Schedule


def _option(default):
    return dataclasses.field(default=default, metadata={"static": True})


@dataclasses.dataclass(eq=False)
class AdamState:
    """Adam's running means of the gradients and of their squares, in the structure of the parameters."""

    mean: typing.Any
    square: typing.Any
    steps: Tensor
    """The number of steps taken so far, i32."""


def _adam_init(params, layout):
    return AdamState(*_optim.adam_init(params, params if layout is None else layout))


def _is_efficient(adam):
    if adam.form not in ("corrected", "efficient"):
        raise ValueError(f"unknown form {adam.form!r} of Adam: use 'corrected' or 'efficient'")
    return adam.form == "efficient"


def _adam_update(adam, weight_decay, decay_rank, params, gradients, state):
    params, parts = _optim.adam_update(
        adam.rate, adam.beta1, adam.beta2, adam.epsilon, weight_decay, decay_rank, _is_efficient(adam), params,
        gradients, state.mean, state.square, state.steps)
    return params, AdamState(*parts)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adam:
    """Adam (Kingma and Ba: Adam, a Method for Stochastic Optimization, 2015).

    `rate` is a number, a Schedule or a function of the number of steps taken. `form` says where epsilon is added, with
    hats for means that are corrected for their start at zero: `"corrected"` is rate * m^ / (sqrt(v^) + epsilon), the
    paper's Algorithm 1; `"efficient"` is rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon), the end of
    its section 2.

    >>> optimizer = ms.optim.Adam(rate=0.1)
    >>> params = {"w": ms.ones(2)}
    >>> state = optimizer.init(params)
    >>> params, state = optimizer.update(params, {"w": ms.ones(2)}, state)
    >>> [round(x, 4) for x in params["w"].tolist()]
    [0.9, 0.9]
    """

    rate: float | Schedule | typing.Callable = _option(1e-3)
    beta1: float = _option(0.9)
    beta2: float = _option(0.999)
    epsilon: float = _option(1e-8)
    form: str = _option("corrected")

    def init(self, params, layout=None) -> AdamState:
        """The state before the first step: zeros created on the devices.

        Each is sharded as the corresponding tensor of `layout` (see zero_layout()), by default as its parameter. The
        means of 16-bit parameters are f32.
        """
        return _adam_init(params, layout)

    def update(self, params, gradients, state: AdamState) -> tuple[typing.Any, AdamState]:
        """One step: the pair (new parameters, new state).

        New tensors have the shardings of the old ones; the step of a parameter is computed in the sharding of its
        state. Call it inside jit.

        Raises InvalidArgumentError for gradients of another structure or shapes.
        """
        return _adam_update(self, 0.0, 0, params, gradients, state)


@dataclasses.dataclass(frozen=True, kw_only=True)
class AdamW:
    """Adam with decoupled weight decay: each step also subtracts rate * weight_decay * parameter.

    (Loshchilov and Hutter: Decoupled Weight Decay Regularization, 2019.) `decay_rank` exempts parameters with fewer
    dimensions from the decay: 2 exempts biases and the scales of norms. The other options are those of Adam.

    >>> optimizer = ms.optim.AdamW(rate=0.1, weight_decay=0.1)
    >>> params = {"w": ms.ones(2)}
    >>> state = optimizer.init(params)
    >>> params, state = optimizer.update(params, {"w": ms.ones(2)}, state)
    >>> [round(x, 4) for x in params["w"].tolist()]
    [0.89, 0.89]
    """

    rate: float | Schedule | typing.Callable = _option(1e-3)
    beta1: float = _option(0.9)
    beta2: float = _option(0.999)
    epsilon: float = _option(1e-8)
    weight_decay: float = _option(1e-2)
    decay_rank: int = _option(0)
    form: str = _option("corrected")

    def init(self, params, layout=None) -> AdamState:
        """The state before the first step, as by Adam.init()."""
        return _adam_init(params, layout)

    def update(self, params, gradients, state: AdamState) -> tuple[typing.Any, AdamState]:
        """One step: the pair (new parameters, new state), as by Adam.update()."""
        return _adam_update(self, self.weight_decay, self.decay_rank, params, gradients, state)


@dataclasses.dataclass(eq=False)
class SgdState:
    """The velocities, in the structure of the parameters; None without momentum."""

    velocity: typing.Any
    steps: Tensor
    """The number of steps taken so far, i32."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sgd:
    """Stochastic gradient descent with momentum and weight decay.

    With g the gradient plus weight_decay times the parameter, the velocity v becomes momentum * v + g, and the
    parameter changes by -rate * v; with `nesterov` by -rate * (g + momentum * v) (Sutskever et al., 2013). `rate` is a
    number, a Schedule or a function of the number of steps taken. `decay_rank` exempts parameters with fewer dimensions
    from the decay.

    >>> optimizer = ms.optim.Sgd(rate=0.1, momentum=0.9)
    >>> params = {"w": ms.ones(2)}
    >>> state = optimizer.init(params)
    >>> params, state = optimizer.update(params, {"w": ms.ones(2)}, state)
    >>> [round(x, 4) for x in params["w"].tolist()]
    [0.9, 0.9]
    """

    rate: float | Schedule | typing.Callable = _option(1e-2)
    momentum: float = _option(0.0)
    nesterov: bool = _option(False)
    weight_decay: float = _option(0.0)
    decay_rank: int = _option(0)

    def init(self, params, layout=None) -> SgdState:
        """The state before the first step; velocities have the shardings of the tensors of `layout`."""
        return SgdState(*_optim.sgd_init(self.momentum, params, params if layout is None else layout))

    def update(self, params, gradients, state: SgdState) -> tuple[typing.Any, SgdState]:
        """One step: the pair (new parameters, new state). Call it inside jit.

        Raises InvalidArgumentError for gradients of another structure or shapes, and for a state that was created with
        or without momentum, unlike these options.
        """
        params, parts = _optim.sgd_update(self.rate, self.momentum, self.nesterov, self.weight_decay, self.decay_rank,
                                          params, gradients, state.velocity, state.steps)
        return params, SgdState(*parts)


# What a link of a chain may be, and what wrappers take.
Optimizer = typing.Union[Adam, AdamW, Sgd, "_Transforming"]


def _transform(optimizer):
    """The transform of options."""
    if isinstance(optimizer, _Transforming):
        return optimizer._bound()
    if isinstance(optimizer, Sgd):
        return _optim.transforms.sgd(optimizer.rate, optimizer.momentum, optimizer.nesterov, optimizer.weight_decay,
                                     optimizer.decay_rank)
    if isinstance(optimizer, (Adam, AdamW)):
        return _optim.transforms.adam(
            optimizer.rate, optimizer.beta1, optimizer.beta2, optimizer.epsilon,
            getattr(optimizer, "weight_decay", 0.0), getattr(optimizer, "decay_rank", 0), _is_efficient(optimizer))
    raise TypeError(f"not an optimizer or a part of one: {optimizer!r}")


@dataclasses.dataclass(eq=False)
class TransformState:
    """The state of all optimizers but Adam, AdamW and Sgd, and of chains, groups and wrappers."""

    slots: dict[str, typing.Any]
    """Tensors for each parameter, by name, in the structure of the parameters: `mean`.

    Those of a link of a Chain begin with its position: `1.mean`. Where a parameter needs none, it is a float32[0].
    """
    numbers: dict[str, Tensor]
    """Numbers of wrappers, such as how many steps were skipped."""
    steps: Tensor
    """The number of calls of update() so far, i32."""


class _Transforming:
    """Options with init() and update(), which make and use a TransformState."""

    def _bound(self):
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in type(self).__name__)[1:]
        fields = dataclasses.fields(typing.cast(typing.Any, self))
        return getattr(_optim.transforms, name)(**{field.name: getattr(self, field.name) for field in fields})

    def init(self, params, layout=None) -> TransformState:
        """The state before the first step, made on the devices.

        A slot in the shape of its parameter is sharded as the corresponding tensor of `layout` (see zero_layout()), by
        default as its parameter; another one as its dimensions are. State of 16-bit parameters is float32.
        """
        return TransformState(*self._bound().init(params, params if layout is None else layout))

    def update(self, params, gradients, state: TransformState) -> tuple[typing.Any, TransformState]:
        """One step: the pair (new parameters, new state).

        New tensors have the shardings of the old ones; the step of a parameter is computed in the sharding of its
        state. Call it inside jit.

        Raises InvalidArgumentError for gradients of another structure or shapes, and for a state of another optimizer.
        """
        params, parts = self._bound().update(params, gradients, state.slots, state.numbers, state.steps)
        return params, TransformState(*parts)


@dataclasses.dataclass(frozen=True, init=False)
class Chain(_Transforming):
    """Applies optimizers and their parts after each other: each gets the changes of the one before.

    The first one gets the gradients. Usually the last one is an optimizer, which turns them into a descent:

        optim.Chain(optim.ClipByGlobalNorm(1.0), optim.Lion(rate=1e-4))

    >>> optimizer = ms.optim.Chain(ms.optim.ClipByGlobalNorm(0.5), ms.optim.Sgd(rate=1.0))
    >>> params = {"w": ms.ones(2)}
    >>> state = optimizer.init(params)
    >>> params, state = optimizer.update(params, {"w": ms.ones(2)}, state)
    >>> [round(x, 4) for x in params["w"].tolist()]
    [0.6464, 0.6464]
    """

    links: tuple[Optimizer, ...] = _option(())

    def __init__(self, *links: Optimizer):
        object.__setattr__(self, "links", links)
        self._bound()

    def _bound(self):
        return _optim.transforms.chain([_transform(link) for link in self.links])


@dataclasses.dataclass(frozen=True, init=False)
class Groups(_Transforming):
    """Different optimizers for different parameters, by patterns of their names.

    The name of a parameter is its path with dots, `blocks.*.wq`, where a layer of an nn.Layers has `*` as its number.
    In a pattern `*` matches any text and nothing else is special. The first pattern that matches applies:

        optim.Groups({"*.bias": optim.Sgd(rate=0.1), "embedding*": optim.Freeze(), "*": optim.Muon()})

    init() raises NotFoundError, with the nearest names, for a pattern that is the first match of no parameter, and
    InvalidArgumentError if no pattern matches a parameter.

    >>> groups = ms.optim.Groups({"b": ms.optim.Freeze(), "*": ms.optim.Sgd(rate=1.0)})
    >>> params = {"w": ms.ones(1), "b": ms.ones(1)}
    >>> params, _ = groups.update(params, {"w": ms.ones(1), "b": ms.ones(1)}, groups.init(params))
    >>> params["w"].item(), params["b"].item()
    (0.0, 1.0)
    """

    groups: tuple[tuple[str, Optimizer], ...] = _option(())

    def __init__(self, groups: "typing.Mapping[str, Optimizer] | typing.Iterable[tuple[str, Optimizer]]"):
        pairs = groups.items() if isinstance(groups, typing.Mapping) else groups
        object.__setattr__(self, "groups", tuple((pattern, optimizer) for pattern, optimizer in pairs))
        self._bound()

    def _bound(self):
        return _optim.transforms.groups([(pattern, _transform(optimizer)) for pattern, optimizer in self.groups])


@dataclasses.dataclass(frozen=True)
class Freeze(_Transforming):
    """Leaves parameters unchanged: a group of those that are not trained."""


@dataclasses.dataclass(frozen=True)
class Scale(_Transforming):
    """Multiplies changes by a number, a Schedule or a function of the number of steps taken."""

    by: float | Schedule | typing.Callable = _option(1.0)


@dataclasses.dataclass(frozen=True)
class Decay(_Transforming):
    """Adds `by` times the parameter to its change.

    Before an optimizer, it is a gradient of the square of the parameter. `decay_rank` exempts parameters with fewer
    dimensions.
    """

    by: float = _option(0.0)
    decay_rank: int = _option(0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Momentum(_Transforming):
    """Adds up changes: v becomes momentum * v + change, which is the new change.

    With `nesterov` the new change is change + momentum * v. State: `velocity`.
    """

    momentum: float = _option(0.9)
    nesterov: bool = _option(False)


@dataclasses.dataclass(frozen=True)
class ClipByValue(_Transforming):
    """Limits each element of a change to [-limit, limit]."""

    limit: float = _option(1.0)


@dataclasses.dataclass(frozen=True)
class ClipByBlock(_Transforming):
    """Scales the change of each parameter whose root mean square is above the limit down to it.

    Of an nn.Layers, the change of each layer.
    """

    limit: float = _option(1.0)


@dataclasses.dataclass(frozen=True)
class ClipByGlobalNorm(_Transforming):
    """Scales all changes by limit / norm if their global norm is above the limit, as clip_by_global_norm()."""

    limit: float = _option(1.0)


@dataclasses.dataclass(frozen=True)
class ApplyIfFinite(_Transforming):
    """Skips a step if an element of the gradients is not finite: parameters and the state of `inner` stay.

    After more than `most` such steps in a row they are taken. Numbers of the state: `in_a_row` and `total`, the steps
    with such gradients, i32.
    """

    inner: Optimizer = dataclasses.field(metadata={"static": True})
    most: int = _option(0)

    def _bound(self):
        return _optim.transforms.apply_if_finite(_transform(self.inner), self.most)


@dataclasses.dataclass(frozen=True)
class MultiSteps(_Transforming):
    """Takes a step of `inner` with the mean of the gradients of `every` calls, in the last of them.

    The other calls change nothing. For batches that arrive in parts; accumulated() is for a batch that is there as a
    whole. With `mean=False` the sum is used. State: `accumulated`.
    """

    inner: Optimizer = dataclasses.field(metadata={"static": True})
    every: int = _option(1)
    mean: bool = _option(True)

    def _bound(self):
        return _optim.transforms.multi_steps(_transform(self.inner), self.every, self.mean)


@dataclasses.dataclass(frozen=True)
class StochasticRounding(_Transforming):
    """Rounds bfloat16 parameters at random to one of the two neighbors of the new value.

    So changes below half of a unit in the last place count on average (Zamirai et al.: Revisiting BFloat16 Training,
    2020). It may be anywhere in a Chain; float32 and float64 parameters are not rounded. The random numbers depend on
    the seed, the step, and the position of the parameter.

    init() raises InvalidArgumentError for float16 and 8-bit parameters.
    """

    seed: int = _option(0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lion(_Transforming):
    """Lion (Chen et al.: Symbolic Discovery of Optimization Algorithms, 2023).

    The parameter changes by -rate * (sign((1 - beta1) * g + beta1 * m) + weight_decay * parameter); then the mean m of
    the gradients g becomes beta2 * m + (1 - beta2) * g. `decay_rank` exempts parameters with fewer dimensions from the
    decay. State: `mean`.

    >>> optimizer = ms.optim.Lion(rate=0.1, weight_decay=0.0)
    >>> params = {"w": ms.ones(2)}
    >>> state = optimizer.init(params)
    >>> params, state = optimizer.update(params, {"w": ms.ones(2)}, state)
    >>> [round(x, 4) for x in params["w"].tolist()]
    [0.9, 0.9]
    """

    rate: float | Schedule | typing.Callable = _option(1e-4)
    beta1: float = _option(0.9)
    beta2: float = _option(0.99)
    weight_decay: float = _option(1e-3)
    decay_rank: int = _option(0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lamb(_Transforming):
    """LAMB (You et al.: Large Batch Optimization for Deep Learning, 2020).

    The direction of Adam with decoupled decay, scaled for each parameter (each layer, in an nn.Layers) to the norm of
    the parameter; a norm of 0 leaves it unscaled. `epsilon_root` is added to the corrected mean of the squares, before
    the root. State: `mean`, `square`.

    >>> optimizer = ms.optim.Lamb(rate=0.1)
    >>> params = {"w": ms.ones((2, 2))}
    >>> params, state = optimizer.update(params, {"w": ms.ones((2, 2))}, optimizer.init(params))
    >>> bool((params["w"] < 1).all())
    True
    """

    rate: float | Schedule | typing.Callable = _option(1e-3)
    beta1: float = _option(0.9)
    beta2: float = _option(0.999)
    epsilon: float = _option(1e-6)
    epsilon_root: float = _option(0.0)
    weight_decay: float = _option(0.0)
    decay_rank: int = _option(0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RmsProp(_Transforming):
    """RMSProp (Hinton, 2012): rate * g / sqrt(v), where v is a running mean of the squares of the gradients g.

    `decay` is that of the running means, `first` the initial v. With `epsilon_inside` the divisor is sqrt(v + epsilon)
    instead of sqrt(v) + epsilon. `centered` subtracts the square of the mean of the gradients from v (Graves, 2013),
    `corrected` corrects the means for their initial values, as Adam does, and `momentum` adds up the steps, as Momentum
    does. State: `square`, and if they are used `mean` and `velocity`.

    >>> optimizer = ms.optim.RmsProp(rate=0.1)
    >>> params = {"w": ms.ones((2, 2))}
    >>> params, state = optimizer.update(params, {"w": ms.ones((2, 2))}, optimizer.init(params))
    >>> bool((params["w"] < 1).all())
    True
    """

    rate: float | Schedule | typing.Callable = _option(1e-3)
    decay: float = _option(0.9)
    epsilon: float = _option(1e-8)
    epsilon_inside: bool = _option(True)
    first: float = _option(0.0)
    centered: bool = _option(False)
    corrected: bool = _option(False)
    momentum: float = _option(0.0)
    nesterov: bool = _option(False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adagrad(_Transforming):
    """Adagrad (Duchi, Hazan and Singer: Adaptive Subgradient Methods, 2011): rate * g / sqrt(s + epsilon).

    s is `first` plus the sum of the squares of the gradients g; where it is 0, nothing changes. State: `square`.

    >>> optimizer = ms.optim.Adagrad(rate=0.1)
    >>> params = {"w": ms.ones((2, 2))}
    >>> params, state = optimizer.update(params, {"w": ms.ones((2, 2))}, optimizer.init(params))
    >>> bool((params["w"] < 1).all())
    True
    """

    rate: float | Schedule | typing.Callable = _option(1e-2)
    first: float = _option(0.1)
    epsilon: float = _option(1e-7)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Adafactor(_Transforming):
    """Adafactor (Shazeer and Stern: Adaptive Learning Rates with Sublinear Memory Cost, 2018).

    Of the running means of the squares of the gradients, a parameter keeps only the means over each of its two largest
    dimensions, if both have at least `smallest_factored` elements; with `factored=False` all parameters keep all
    squares. Their decay in step t is 1 - t**-decay. `epsilon` is added to the squares. `relative` multiplies the step
    by the root mean square of the parameter, at least 1e-3. `clip` limits the root mean square of the step before the
    rate, as ClipByBlock does (0: no limit). `momentum` is the decay of a running mean of the steps. `weight_decay`
    times the parameter is subtracted in each step, not multiplied by the rate. State: `row` and `column`, or `square`;
    `velocity` with momentum.

    >>> optimizer = ms.optim.Adafactor(rate=0.1)
    >>> params = {"w": ms.ones((2, 2))}
    >>> params, state = optimizer.update(params, {"w": ms.ones((2, 2))}, optimizer.init(params))
    >>> bool((params["w"] < 1).all())
    True
    """

    rate: float | Schedule | typing.Callable = _option(1e-2)
    decay: float = _option(0.8)
    smallest_factored: int = _option(128)
    relative: bool = _option(True)
    clip: float = _option(1.0)
    momentum: float = _option(0.0)
    weight_decay: float = _option(0.0)
    decay_rank: int = _option(0)
    epsilon: float = _option(1e-30)
    factored: bool = _option(True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Muon(_Transforming):
    """Muon (Jordan et al., 2024): the momentum of each matrix, made nearly orthogonal by Newton-Schulz iterations.

    Of an nn.Layers, the matrix of each layer. Parameters of another rank are updated by AdamW with the same `nesterov`
    and the options `adam_*` (without `adam_rate`, the rate is that of the matrices); use Groups for matrices that are
    not products, such as embeddings. An iteration replaces X by a X + (b A + c A A) X with A = X X^T and (a, b, c) the
    `coefficients`. `epsilon` is added to the norm by which a matrix is divided. `adaptive` multiplies the step of a
    matrix by its product with the momentum (Bernstein and Newhouse: Old Optimizer, New Norm, 2024). `rms` is about the
    root mean square of a step before the rate: the step is multiplied by sqrt(max(rows, columns)) * rms (Liu et al.:
    Muon is Scalable for LLM Training, 2025, which uses 0.2); 0 multiplies it by sqrt(max(1, columns / rows)). State:
    `mean`, and `square` for the parameters of AdamW.

    >>> optimizer = ms.optim.Muon(rate=0.1)
    >>> params = {"w": ms.ones((2, 2))}
    >>> params, state = optimizer.update(params, {"w": ms.ones((2, 2))}, optimizer.init(params))
    >>> bool((params["w"] < 1).all())
    True
    """

    rate: float | Schedule | typing.Callable = _option(2e-2)
    momentum: float = _option(0.95)
    nesterov: bool = _option(True)
    iterations: int = _option(5)
    coefficients: tuple[float, float, float] = _option((3.4445, -4.7750, 2.0315))
    epsilon: float = _option(1e-8)
    weight_decay: float = _option(0.0)
    adaptive: bool = _option(False)
    rms: float = _option(0.0)
    adam_rate: float | Schedule | typing.Callable | None = _option(None)
    adam_beta1: float = _option(0.9)
    adam_beta2: float = _option(0.999)
    adam_weight_decay: float = _option(0.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shampoo(_Transforming):
    """Shampoo (Gupta, Koren and Singer: Preconditioned Stochastic Tensor Optimization, 2018).

    For each dimension d of a parameter with k dimensions, H_d is epsilon times the identity plus the sum of G_d G_d^T,
    where the gradient G is a matrix with the rows of dimension d. The gradient is multiplied along each dimension by
    H_d^(-1/2k). Dimensions that are larger than `largest` are left out, and not counted in k. The roots are computed in
    each step by eigh(); its time grows with the cube of the dimension. `weight_decay` times the parameter is added to
    the gradient. State: `factor_0`, `factor_1`, ... by dimension of a layer; `velocity` with momentum.

    >>> optimizer = ms.optim.Shampoo(rate=0.1)
    >>> params = {"w": ms.ones((2, 2))}
    >>> params, state = optimizer.update(params, {"w": ms.ones((2, 2))}, optimizer.init(params))
    >>> bool((params["w"] < 1).all())
    True
    """

    rate: float | Schedule | typing.Callable = _option(1e-1)
    epsilon: float = _option(1e-4)
    momentum: float = _option(0.0)
    nesterov: bool = _option(False)
    weight_decay: float = _option(0.0)
    decay_rank: int = _option(0)
    largest: int = _option(1024)
