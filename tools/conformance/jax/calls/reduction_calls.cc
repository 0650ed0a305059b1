// Sums, extremes and cumulative functions along dimensions; sorting and order statistics.
#include "tools/conformance/jax/calls/call_table.h"

namespace meshard::conformance {
namespace {

CallFunction reduced(Tensor (*op)(In, DimensionList, bool)) {
  return one_result([op](Operands x, const Attributes& at) {
    return op(x[0], at.dimensions(), at.flag("keepdims"));
  });
}

CallFunction spread(Tensor (*op)(In, DimensionList, double, bool)) {
  return one_result([op](Operands x, const Attributes& at) {
    return op(x[0], at.dimensions(), at.number("correction"), at.flag("keepdims"));
  });
}

CallFunction running(Tensor (*op)(In, std::int64_t, bool)) {
  return one_result([op](Operands x, const Attributes& at) {
    return op(x[0], at.integer("dimension"), at.flag("reverse"));
  });
}

CallFunction place(Tensor (*op)(In, std::optional<std::int64_t>, bool)) {
  return one_result([op](Operands x, const Attributes& at) {
    return op(x[0], at.maybe_integer("dimension"), at.flag("keepdims"));
  });
}

CallFunction along(Tensor (*op)(In, std::int64_t)) {
  return one_result(
      [op](Operands x, const Attributes& at) { return op(x[0], at.integer("dimension")); });
}

Tensor norm_of(Operands x, const Attributes& at) {
  return vector_norm(x[0], at.dimensions(), at.flag("keepdims"), at.number("order"));
}

}  // namespace

const CallTable& reduction_calls() {
  static const CallTable table{
      {"sum", reduced(sum)},
      {"prod", reduced(prod)},
      {"max", reduced(max)},
      {"min", reduced(min)},
      {"any", reduced(any)},
      {"all", reduced(all)},
      {"mean", reduced(mean)},
      {"logsumexp", reduced(logsumexp)},
      {"count_nonzero", reduced(count_nonzero)},
      {"var", spread(var)},
      {"std_dev", spread(std_dev)},
      {"argmax", place(argmax)},
      {"argmin", place(argmin)},
      {"softmax", along(softmax)},
      {"log_softmax", along(log_softmax)},
      {"glu", along(glu)},
      {"cumulative_sum", running(cumulative_sum)},
      {"cumulative_prod", running(cumulative_prod)},
      {"cumulative_max", running(cumulative_max)},
      {"cumulative_min", running(cumulative_min)},
      {"cumulative_logsumexp", running(cumulative_logsumexp)},
      {"vector_norm", one_result(norm_of)},
  };
  return table;
}

}  // namespace meshard::conformance
