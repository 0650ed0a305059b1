"""Transformations of functions: jit, derivatives, batches, loops and branches."""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypedDict, TypeVar, Unpack, overload

from . import _meshard, tree
from ._calls import takes_function

__all__ = ["jit", "value_and_grad", "grad", "vjp", "linearize", "jvp", "hvp", "jacrev", "jacfwd", "hessian", "vmap",
           "checkpoint", "custom_vjp", "apply_backward_optimization_barrier",
           "optimization_barrier", "scan", "map", "while_loop",
           "fori_loop", "cond", "switch_case", "JitStats"]

JitStats = _meshard.JitStats

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
Function = Callable[..., Any]

if TYPE_CHECKING:
    class JitOptions(TypedDict, total=False):
        """The options of jit."""

        static_argnums: int | Sequence[int] | None
        static_argnames: str | Sequence[str] | None
        donate_argnums: int | Sequence[int] | None
        donate_argnames: str | Sequence[str] | None
        name: str | None
        most_programs: int
        keep_on_disk: bool

    class Jitted(Protocol[P, R]):
        """A jitted function."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

        @property
        def stats(self) -> JitStats: ...


def _positions(numbers: int | Sequence[int] | None) -> list[int]:
    if numbers is None:
        return []
    return [numbers] if isinstance(numbers, int) else list(numbers)


def _pair(result: Any) -> Any:
    """A list as a tuple; anything else as it is, for the C++ side to reject."""
    return tuple(result) if isinstance(result, list) else result


def _parameter_names(function: Function) -> list[str]:
    """The names of the positional parameters."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _check_arguments(function: Function, option: str, positions: Sequence[int], names: Sequence[str]) -> None:
    """Raises an error for positions and names of arguments that the function does not have."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    known = [p.name for p in parameters if p.kind not in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        for name in names:
            if name not in known:
                raise ValueError(f"{option}: the function has no parameter {name!r}; {_meshard.nearest_text(name, known)}")
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if not any(p.kind is p.VAR_POSITIONAL for p in parameters):
        for position in positions:
            if not -count <= position < count:
                raise ValueError(f"{option}: there is no argument {position}; the function has {count} positional "
                                 "parameters")


@overload
def jit(function: Callable[P, R], **options: "Unpack[JitOptions]") -> "Jitted[P, R]": ...
@overload
def jit(function: None = None, **options: "Unpack[JitOptions]") -> "Callable[[Callable[P, R]], Jitted[P, R]]": ...


def jit(function: Function | None = None, *, static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Sequence[str] | None = None, donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Sequence[str] | None = None, name: str | None = None, most_programs: int = 256,
        keep_on_disk: bool = True) -> Any:
    """Compiles a function once for each signature of its arguments.

    Tensors, arrays of any library and numbers among the arguments, also inside structures, are traced; the elements of
    arrays are read at each call. Constants (strings, functions and what else is compared by its value, see `tree`) and
    the arguments named by `static_argnums` and `static_argnames` are part of the program: another value gives another
    program. Anything else, such as an object of a plain class, is a TypeError. The memory of donated arguments may be used for the results; they cannot be used afterwards.

    Inside another trace, and inside a function that is being differentiated, the function is recorded in place.

    `name` is that of the program in reports and error messages. At most `most_programs` programs are kept; with
    `keep_on_disk`, compiled programs are also kept in the cache on disk. The result has the attribute `stats`, a
    JitStats.

        >>> @ms.jit
        ... def scaled(x, by):
        ...     return x * by
        >>> scaled(ms.ones(3), 2.0).tolist()
        [2.0, 2.0, 2.0]
        >>> scaled.stats.traces
        1

    Raises ValueError for positions or names of arguments that the function does not have.
    """
    if function is None:
        return functools.partial(
            jit, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums,
            donate_argnames=donate_argnames, name=name, most_programs=most_programs, keep_on_disk=keep_on_disk)
    takes_function("jit", function)
    names = _parameter_names(function)
    static_names = [static_argnames] if isinstance(static_argnames, str) else list(static_argnames or [])
    donate_names = [donate_argnames] if isinstance(donate_argnames, str) else list(donate_argnames or [])
    _check_arguments(function, "static_argnums or static_argnames", _positions(static_argnums), static_names)
    _check_arguments(function, "donate_argnums or donate_argnames", _positions(donate_argnums), donate_names)
    positions = [p % len(names) if p < 0 and names else p for p in _positions(static_argnums)]
    positions += [names.index(n) for n in static_names if n in names and names.index(n) not in positions]
    static_names += [names[p] for p in positions if p < len(names) and names[p] not in static_names]
    donate = [p % len(names) if p < 0 and names else p for p in _positions(donate_argnums)]
    for donated in donate_names:
        if donated not in names:
            raise ValueError(f"the function has no parameter {donated!r} to donate: {', '.join(names)}")
        donate.append(names.index(donated))
    own_name = name or str(getattr(function, "__name__", "main"))
    if not own_name.isidentifier():
        own_name = "main"
    jitted = _meshard.Jit(function, own_name, sorted(set(donate)), positions, static_names, names, most_programs,
                          keep_on_disk)
    return functools.update_wrapper(jitted, function)


def _substituted(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any],
                 argnums: Sequence[int]) -> tuple[tuple[Any, ...], Function]:
    """The wanted arguments, and a function of them."""
    positions = [p % len(args) if p < 0 else p for p in argnums]
    for position in positions:
        if position >= len(args):
            raise ValueError(f"argnums names argument {position}, but the call has {len(args)} positional arguments")

    def call(wanted: Sequence[Any]) -> Any:
        full = list(args)
        for position, value in zip(positions, wanted, strict=True):
            full[position] = value
        return function(*full, **kwargs)

    return tuple(args[p] for p in positions), call


def value_and_grad(function: Callable[P, Any], argnums: int | Sequence[int] = 0,
                   has_aux: bool = False) -> Callable[P, tuple[Any, Any]]:
    """A function of the same arguments that returns (value, gradient).

    `function` returns a float of rank 0, or with `has_aux` the pair (value, auxiliary), and the result is then
    ((value, auxiliary), gradient). For a sequence of argnums, the gradient is a tuple.

    `argnums` are the positions of the arguments to differentiate with respect to: tensors, or structures of them, of
    floating-point or complex dtypes. A gradient has the structure, shapes and dtypes of its argument.

        >>> value, gradient = ms.value_and_grad(lambda x: (x * x).sum())(ms.asarray([1.0, 2.0]))
        >>> float(value), gradient.tolist()
        (5.0, [2.0, 4.0])

    Raises InvalidArgumentError if the value is not a float of rank 0, and ValueError if the call has no argument at a
    position.
    """
    takes_function("value_and_grad", function)
    single = isinstance(argnums, int)

    @functools.wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def differentiated(*args: P.args, **kwargs: P.kwargs) -> tuple[Any, Any]:
        wanted, call = _substituted(function, args, kwargs, [argnums] if isinstance(argnums, int) else argnums)
        loss_and_rest = call if has_aux else lambda inputs: (call(inputs), None)
        (value, auxiliary), gradients = _meshard.value_and_grad(loss_and_rest, wanted)
        result = (value, auxiliary) if has_aux else value
        return result, gradients[0] if single else gradients

    return differentiated


def grad(function: Callable[P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[P, Any]:
    """A function of the same arguments that returns the gradient, with `has_aux` (gradient, auxiliary).

    `argnums` and `has_aux` are as for value_and_grad(), and so are the errors.

        >>> ms.grad(lambda x: x**3)(2.0).item()
        12.0
        >>> ms.grad(ms.grad(lambda x: x**3))(2.0).item()
        12.0
    """
    takes_function("grad", function)
    both = value_and_grad(function, argnums, has_aux)

    @functools.wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def differentiated(*args: P.args, **kwargs: P.kwargs) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return differentiated


def vjp(function: Function, *primals: Any) -> tuple[Any, Function]:
    """(result, pullback): the pullback maps a cotangent of the result to the tuple of the primals' cotangents.

    Unlike grad(), the result may be any structure of tensors. A cotangent has the structure and shapes of the result.

        >>> result, pullback = ms.vjp(lambda x, y: x * y, ms.asarray([1.0, 2.0]), ms.asarray([3.0, 4.0]))
        >>> [each.tolist() for each in pullback(ms.ones(2))]
        [[3.0, 4.0], [1.0, 2.0]]
    """
    result, pullback = _meshard.vjp(lambda inputs: function(*inputs), primals)
    return result, pullback


def linearize(function: Function, *primals: Any) -> tuple[Any, Function]:
    """(result, push): `push` maps tangents of the primals to the tangent of the result.

    >>> value, push = ms.linearize(ms.sin, 0.0)
    >>> value.item(), push(2.0).item()
    (0.0, 2.0)
    """
    result, push = _meshard.linearize(lambda inputs: function(*inputs), primals)
    return result, lambda *tangents: push(tangents)


def jvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """(result, tangent): the derivative at `primals` in the direction `tangents`, both tuples of arguments.

    >>> value, tangent = ms.jvp(lambda x: x * x, (3.0,), (1.0,))
    >>> value.item(), tangent.item()
    (9.0, 6.0)
    """
    result, push = linearize(function, *primals)
    return result, push(*tangents)


def hvp(function: Function, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian of a function with a scalar result, at `primals`, times `tangents`.

    >>> ms.hvp(lambda x: (x**3).sum(), (ms.asarray([1.0, 2.0]),), (ms.asarray([1.0, 0.0]),))[0].tolist()
    [6.0, 0.0]
    """
    gradients = grad(function, argnums=tuple(range(len(primals))))
    return jvp(gradients, primals, tangents)[1]


def _jacobian(function: Callable[P, Any], argnums: int | Sequence[int], forward: bool) -> Callable[P, Any]:
    takes_function("jacfwd" if forward else "jacrev", function)
    single = isinstance(argnums, int)

    @functools.wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def differentiated(*args: P.args, **kwargs: P.kwargs) -> Any:
        wanted, call = _substituted(function, args, kwargs, [argnums] if isinstance(argnums, int) else argnums)
        result, rows = _meshard.jacobian(call, wanted, forward)
        inside = tree.structure(wanted)
        blocks = [inside.unflatten(row) for row in rows]
        return tree.structure(result).unflatten([block[0] if single else block for block in blocks])

    return differentiated


def jacrev(function: Callable[P, Any], argnums: int | Sequence[int] = 0) -> Callable[P, Any]:
    """A function that returns the Jacobian, by reverse mode: the structure of the result, with the argument's inside.

    For f from shape [n] to [m], the Jacobian is [m, n]: the dimensions of the result, then those of the argument. Best
    for many inputs and few results.

        >>> ms.jacrev(lambda x: x * x)(ms.asarray([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    return _jacobian(function, argnums, forward=False)


def jacfwd(function: Callable[P, Any], argnums: int | Sequence[int] = 0) -> Callable[P, Any]:
    """A function that returns the Jacobian, by forward mode: as jacrev(), but best for few inputs and many results.

        >>> ms.jacfwd(lambda t: ms.stack([t, t * t]))(3.0).tolist()
        [1.0, 6.0]
    """
    return _jacobian(function, argnums, forward=True)


def hessian(function: Callable[P, Any], argnums: int | Sequence[int] = 0) -> Callable[P, Any]:
    """A function that returns the Hessian of a function with a scalar result.

    For an argument of shape [n] it is [n, n].

        >>> ms.hessian(lambda x: (x**3).sum())(ms.asarray([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(jacrev(function, argnums), argnums)


def _is_axis(value: Any) -> bool:
    return value is None or isinstance(value, int)


def vmap(function: Callable[..., R], in_axes: Any = 0, out_axes: Any = 0, *, axis_size: int | None = None,
         mesh_axis: str = "") -> Callable[..., R]:
    """A function that runs `function` on every member of a batch at once.

    `in_axes` has the batch dimension of each argument: an integer, None for an argument that all members share, or a
    structure of these that follows the argument. `out_axes` is the same for the result. `mesh_axis` is the mesh axis
    that splits the batch dimension of values whose sharding the function specifies.

    Without a batch dimension of 0 or more in any argument, `axis_size` is the size of the batch.

        >>> dots = ms.vmap(lambda x, y: (x * y).sum(), in_axes=(0, None))
        >>> dots(ms.asarray([[1.0, 2.0], [3.0, 4.0]]), ms.ones(2)).tolist()
        [3.0, 7.0]

    Raises InvalidArgumentError if batch dimensions have different sizes, and ValueError if `in_axes` does not follow
    the arguments.
    """

    takes_function("vmap", function)
    @functools.wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def batched(*args: Any) -> Any:
        prefix = in_axes if _is_axis(in_axes) else tuple(in_axes)
        axes = tree.broadcast_prefix(prefix, args, _is_axis)

        def axes_of(result: Any) -> list[int | None]:
            return tree.broadcast_prefix(out_axes, result, _is_axis)

        return _meshard.vmap(lambda inputs: function(*inputs), args, axes, axes_of, axis_size, mesh_axis)

    return batched


@overload
def checkpoint(function: Callable[P, R], *, policy: str = "nothing", names: Sequence[str] = ()) -> Callable[P, R]: ...
@overload
def checkpoint(function: None = None, *, policy: str = "nothing",
               names: Sequence[str] = ()) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def checkpoint(function: Function | None = None, *, policy: str = "nothing", names: Sequence[str] = ()) -> Any:
    """A function whose values are recomputed for its derivative instead of being kept.

    `policy` says what is kept: `"nothing"`, `"dots"` (results of products), `"everything"`, or `"named"` (values that
    checkpoint_name gave one of `names`).

    It saves memory: the values between a layer's input and output need not be kept until the backward pass.

        >>> block = ms.checkpoint(lambda x: ms.sin(ms.sin(x)), policy="nothing")
        >>> round(ms.grad(block)(0.5).item(), 4)
        0.7786

    Raises ValueError for another policy.
    """
    if function is None:
        return functools.partial(checkpoint, policy=policy, names=names)
    if policy not in ("nothing", "dots", "everything", "named"):
        raise ValueError(f"unknown checkpoint policy {policy!r}: use nothing, dots, everything or named")

    @functools.wraps(function)
    def recomputed(*args: Any, **kwargs: Any) -> Any:
        return _meshard.checkpoint(lambda inputs: function(*inputs[0], **inputs[1]), (args, kwargs), policy, list(names))

    return recomputed


class custom_vjp:
    """A function with a derivative of its own.

    >>> @ms.custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda residuals, g: (ms.clip(g, -1, 1),))
    >>> ms.grad(lambda x: 5 * clipped(x))(3.0).item()
    1.0

    `forward(*args)` returns (result, residuals), and `backward(residuals, cotangent)` the tuple of the arguments'
    cotangents. Inside `forward`, a call of the function itself is the original function.
    """

    def __init__(self, function: Function) -> None:
        import threading  # only here: it takes time to import
        functools.update_wrapper(self, function)
        self._function = function
        self._forward: Function | None = None
        self._backward: Function | None = None
        self._in_forward = threading.local()

    def defvjp(self, forward: Function, backward: Function) -> None:
        """Sets the derivative."""
        self._forward, self._backward = forward, backward

    def __call__(self, *args: Any) -> Any:
        """The value of the function, with its own derivative."""
        forward, backward = self._forward, self._backward
        if forward is None or backward is None:
            raise RuntimeError(f"{getattr(self, '__name__', 'the function')} has no derivative yet: call defvjp(forward, backward)")
        if getattr(self._in_forward, "now", False):
            return self._function(*args)

        def run(inputs: Any) -> Any:
            self._in_forward.now = True
            try:
                return _pair(forward(*inputs))
            finally:
                self._in_forward.now = False

        def pull(residuals: Any, cotangent: Any) -> Any:
            found = _pair(backward(residuals, cotangent))
            return (found,) if len(args) == 1 and type(found) is not tuple else found

        return _meshard.custom_vjp(run, pull, args)


def optimization_barrier(values: Any) -> Any:
    """The same tensor or structure. The compiler must not fuse, move or recompute across this point, and uses none of the
    values before all of them are computed. The derivative has a barrier of its own."""
    return _meshard.optimization_barrier(values)


def apply_backward_optimization_barrier(function: Callable[..., R]) -> Callable[..., R]:
    """A function with the same value whose cotangents pass through one optimization barrier."""

    @functools.wraps(function)
    def with_barrier(*args: Any) -> Any:
        return _meshard.apply_backward_optimization_barrier(lambda inputs: function(*inputs), args)

    return with_barrier


def scan(function: Function, init: Any, xs: Any = None, *, length: int | None = None, reverse: bool = False,
         unroll: int = 1) -> tuple[Any, Any]:
    """Runs `function(carry, x)` for each slice of `xs` along the first dimension; it returns (carry, y).

    The result is the last carry, and the y of all steps stacked along a new first dimension.

    `xs` is a structure of tensors that have the same first dimension, or None, with the number of steps as `length`.
    The carry keeps its structure, shapes and dtypes. `reverse` starts with the last slice; `unroll` steps are one
    iteration of the compiled loop.

        >>> carry, sums = ms.scan(lambda total, x: (total + x, total + x), 0.0, ms.asarray([1.0, 2.0, 3.0]))
        >>> carry.item(), sums.tolist()
        (6.0, [1.0, 3.0, 6.0])

    Raises InvalidArgumentError if a step changes the type of the carry, or first dimensions differ.
    """
    carry, ys = _meshard.scan(lambda carry, x: _pair(function(carry, x)), init, xs, reverse, length, unroll)
    return carry, ys


def map(function: Function, xs: Any) -> Any:
    """Applies a function to each slice of `xs` along the first dimension, one after the other, and stacks the results.

    >>> ms.map(lambda x: x * 2, ms.asarray([1, 2, 3])).tolist()
    [2, 4, 6]
    """
    return scan(lambda carry, x: (None, function(x)), None, xs)[1]


def while_loop(condition: Function, body: Function, init: Any) -> Any:
    """Repeats `carry = body(carry)` while `condition(carry)` is true. It has no derivative.

    The carry is a structure of tensors and keeps its shapes and dtypes.

        >>> ms.while_loop(lambda x: x < 100, lambda x: x * 2, 3).item()
        192

    Raises InvalidArgumentError if `body` changes the type of the carry, or the condition is not a bool of rank 0.
    """
    return _meshard.while_loop(condition, body, init)


def fori_loop(low: Any, high: Any, body: Function, init: Any) -> Any:
    """`carry = body(i, carry)` for i from low to high - 1. With bounds that are numbers it has a derivative.

        >>> ms.fori_loop(0, 5, lambda i, total: total + i, 0).item()
        10

    Raises InvalidArgumentError if `body` changes the type of the carry.
    """
    return _meshard.fori_loop(low, high, body, init)


def cond(predicate: Any, when_true: Function, when_false: Function, *operands: Any) -> Any:
    """Calls one of two functions with the operands, depending on a bool of rank 0. Only that one runs.

    Both functions return the same structure, shapes and dtypes.

        >>> ms.cond(ms.asarray(True), lambda x: x + 1, lambda x: x - 1, 5).item()
        6

    Raises InvalidArgumentError if the results have different types, or `predicate` is not a bool of rank 0.
    """
    return _meshard.branch(predicate, [lambda given: when_false(*given), lambda given: when_true(*given)], operands, True)


def switch_case(index: Any, functions: Sequence[Function], *operands: Any) -> Any:
    """Calls function number `index`, which is clamped, with the operands. Only that one runs.

    >>> ms.switch_case(1, [lambda x: x, lambda x: 10 * x], 7).item()
    70
    """

    def of(function: Function) -> Function:
        return lambda given: function(*given)

    return _meshard.branch(index, [of(function) for function in functions], operands, False)
