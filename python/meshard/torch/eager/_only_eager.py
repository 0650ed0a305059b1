"""Operations of PyTorch, most of them of backward passes, that only eager programs on a device call.

They belong to recurrent cells, and to losses and activations that are decomposed in captured programs.
"""

import torch


def _sum(*given):
    return sum(each for each in given[1:] if each is not None) + given[0]


def _lstm(args, kwargs):
    input_gates, hidden_gates, cx, *biases = args
    i, f, g, o = _sum(input_gates, hidden_gates, *biases).chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def _lstm_gradients(args, kwargs):
    of_hy, of_cy, cx, cy, gates, has_bias = args
    if of_hy is None and of_cy is None:
        return None, None, None
    i, f, g, o = gates.chunk(4, 1)
    tanh = cy.tanh()
    of_hy = torch.zeros_like(cy) if of_hy is None else of_hy
    of_cell = _sum(of_hy * o * (1 - tanh * tanh), of_cy)
    of_gates = torch.cat([of_cell * g * i * (1 - i), of_cell * cx * f * (1 - f), of_cell * i * (1 - g * g),
                          of_hy * tanh * o * (1 - o)], 1)
    return of_gates, of_cell * f, of_gates.sum(0) if has_bias else None


def _gru(args, kwargs):
    input_gates, hidden_gates, hx, *biases = args
    input_bias, hidden_bias = (*biases, None, None)[:2]
    of_input, of_hidden = _sum(input_gates, input_bias).chunk(3, 1), _sum(hidden_gates, hidden_bias).chunk(3, 1)
    r, z = (of_input[0] + of_hidden[0]).sigmoid(), (of_input[1] + of_hidden[1]).sigmoid()
    n = (of_input[2] + r * of_hidden[2]).tanh()
    return n + z * (hx - n), torch.cat([r, z, n, hx, of_hidden[2]], 1)


def _gru_gradients(args, kwargs):
    of_hy, workspace, has_bias = args
    r, z, n, hx, hidden = workspace.chunk(5, 1)
    of_z, of_n = of_hy * (hx - n) * z * (1 - z), of_hy * (1 - z) * (1 - n * n)
    of_r = of_n * hidden * r * (1 - r)
    of_input, of_hidden = torch.cat([of_r, of_z, of_n], 1), torch.cat([of_r, of_z, of_n * r], 1)
    biases = (of_input.sum(0), of_hidden.sum(0)) if has_bias else (None, None)
    return of_input, of_hidden, of_hy * z, *biases


def _shrunk(args, kwargs):
    gradient, x, bound = args
    return torch.where(x.abs() <= bound, 0, gradient)


def _scaled(made, gradient, x, reduction):
    """The gradient of a loss whose reduction is 0 (none), 1 (mean) or 2 (sum)."""
    if x.ndim < 2:
        return (made * gradient).reshape(x.shape)
    return made * (gradient.unsqueeze(-1) if reduction == 0 else gradient / len(x) if reduction == 1 else gradient)


def _of_margin(args, kwargs):
    gradient, x, target, p, margin, weight, reduction = (*args, *(None, 1)[len(args) - 5:])
    rows, target = torch.atleast_2d(x), target.reshape(-1, 1)
    distance = (margin - rows.gather(1, target) + rows).scatter(1, target, 0).clamp_min(0)
    each = (distance > 0).to(x.dtype) if p == 1 else 2 * distance
    each = each / rows.shape[1] if weight is None else each * weight[target] / rows.shape[1]
    return _scaled(each.scatter_add(1, target, -each.sum(1, keepdim=True)), gradient, x, reduction)


def _of_margins(args, kwargs):
    gradient, x, target, reduction, is_target = args
    rows, target = torch.atleast_2d(x), torch.atleast_2d(target)
    counts = (target >= 0).to(x.dtype).cumprod(1)  # of what follows the first -1, nothing counts
    target = target.clamp_min(0)
    pairs = (1 - rows.gather(1, target).unsqueeze(2) + rows.unsqueeze(1)) > 0
    each = pairs * counts.unsqueeze(2) * (1 - torch.atleast_2d(is_target)).unsqueeze(1) / rows.shape[1]
    return _scaled(each.sum(1).scatter_add(1, target, -each.sum(2)), gradient, x, reduction)


ONLY_EAGER = {
    "aten._thnn_fused_lstm_cell.default": _lstm, "aten._thnn_fused_lstm_cell_backward_impl.default": _lstm_gradients,
    "aten._thnn_fused_gru_cell.default": _gru, "aten._thnn_fused_gru_cell_backward.default": _gru_gradients,
    "aten.softshrink_backward.default": _shrunk, "aten.hardshrink_backward.default": _shrunk,
    "aten.multi_margin_loss_backward.default": _of_margin,
    "aten.multilabel_margin_loss_backward.default": _of_margins,
}
"""From the name of an operation to what computes it by others."""
