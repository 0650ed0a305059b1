// take_*, index_*, scatter_*, segment_*, dynamic_*: elements at computed indices.
#include <cmath>

#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {
namespace {

using Scatter = Tensor (*)(In, In, In, ScatterDimensions, bool, bool);

const ScatterDimensions kRows{.update_window_dims = {1},
                              .inserted_window_dims = {0},
                              .scatter_dims_to_operand_dims = {0},
                              .index_vector_dim = 1};
const ScatterDimensions kPairs{
    .inserted_window_dims = {0, 1}, .scatter_dims_to_operand_dims = {0, 1}, .index_vector_dim = 1};

Scatter scatter_named(std::string_view text) {
  if (mentions(text, "set")) return scatter_set;
  if (mentions(text, "mul")) return scatter_multiply;
  if (mentions(text, "min")) return scatter_min;
  if (mentions(text, "max")) return scatter_max;
  return scatter_add;
}

// `at[i]` with rows of updates, or `x[i, j]` with single elements.
Program scatter_of(const std::string& id, const std::string& what, std::size_t inputs) {
  Scatter op = scatter_named(mentions(what, "set") || mentions(what, "m") ? what : id);
  if (id.find("_2d") == std::string::npos) op = scatter_named(id);
  bool unique = mentions(what, "distinct") || mentions(what, "unique");
  if (inputs == 4)
    return single([=](Inputs x) {
      return op(x[0], stack({x[1], x[2]}, 1), x[3], kPairs, false, unique);
    });
  return single([=](Inputs x) { return op(x[0], x[1], x[2], kRows, false, unique); });
}

// Reads `segment sum 4`.
Program segments(const std::string& id, const Json& test) {
  Scatter op = scatter_named(id);
  Shape shape = result_shape(test);
  double start = 0;
  if (op == scatter_max) start = -HUGE_VAL;
  if (op == scatter_min) start = HUGE_VAL;
  if (op == scatter_multiply) start = 1;
  return single([=](Inputs x) {
    ScatterDimensions dims = kRows;
    if (x[0].rank() == 1) dims.update_window_dims = {};
    Tensor into = broadcast_to(constant(HostArray::full({x[0].dtype(), {}}, start)), shape);
    return op(into, x[1], x[0], dims, false, false);
  });
}

// JAX's start indices: JAX counts negative ones from the end first; meshard's are those of
// StableHLO.
Tensors starts_of(const Tensor& vector, const Shape& shape) {
  Tensors starts;
  for (int d = 0; d < shape.rank(); ++d) {
    Tensor start = index(vector, {d});
    starts.push_back(where(start < 0, start + shape[d], start));
  }
  return starts;
}

std::vector<In> as_operands(const Tensors& tensors) { return {tensors.begin(), tensors.end()}; }

Tensor cut(const Tensor& x, const Tensor& at, const Shape& sizes) {
  Tensors starts = starts_of(at, x.shape());
  return dynamic_slice(x, as_operands(starts), sizes.sizes());
}

Tensor put(const Tensor& x, const Tensor& update, const Tensor& at) {
  Tensors starts = starts_of(at, x.shape());
  return dynamic_update_slice(x, update, as_operands(starts));
}

Tensor pairs(const Tensor& x, const Tensor& i, const Tensor& j) {
  return gather(x, stack({i, j}, 1),
                {.collapsed_slice_dims = {0, 1}, .start_index_map = {0, 1}, .index_vector_dim = 1},
                {1, 1});
}

}  // namespace

std::optional<Program> index_program(const Json& test) {
  const std::string id = test.at("id"), what = test.at("what");
  if (id.starts_with("take_along_axis")) {
    std::int64_t axis = integer_behind(what, "axis", 1);
    return single([axis](Inputs x) { return take_along_axis(x[0], x[1], axis); });
  }
  if (id == "take_oob_fill")  // NaN for indices out of range
    return single([](Inputs x) {
      std::int64_t size = x[0].dim(0);
      Tensor inside = logical_and(x[1] >= -size, x[1] < size);
      Tensor from = take(x[0], where(x[1] < 0, x[1] + size, x[1]));
      return where(expand_dims(inside, 1), from, NAN);
    });
  if (id.starts_with("take") || id.starts_with("embedding")) {
    std::int64_t axis = integer_behind(what, "axis", 0);
    // Recorded with mode="clip", which does not count from the end.
    return single([axis](Inputs x) { return take(x[0], clip(x[1], 0, x[0].dim(axis) - 1), axis); });
  }
  if (id == "index_negative") return single([](Inputs x) { return index(x[0], {-1}); });
  if (id == "index_pairs") return single([](Inputs x) { return pairs(x[0], x[1], x[2]); });
  if (id.starts_with("scatter")) return scatter_of(id, what, test.at("inputs").size());
  if (id.starts_with("segment")) return segments(id, test);
  if (id.starts_with("dynamic_slice"))
    return single([to = result_shape(test)](Inputs x) { return cut(x[0], x[1], to); });
  if (id.starts_with("dynamic_update_slice"))
    return single([](Inputs x) { return put(x[0], x[1], x[2]); });
  return std::nullopt;
}

}  // namespace meshard::conformance
