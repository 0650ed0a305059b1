// Elements at computed indices, and indices of elements.
#include "tools/conformance/jax/calls/call_table.h"

namespace meshard::conformance {
namespace {

using Scatter = Tensor (*)(In, In, In, ScatterDimensions, bool, bool);

// Scatters rows of updates at indices along dimension 0.
CallFunction scattered(Scatter op) {
  return one_result([op](Operands x, const Attributes&) {
    ScatterDimensions dims{
        .inserted_window_dims = {0}, .scatter_dims_to_operand_dims = {0}, .index_vector_dim = 1};
    for (std::int64_t d = 1; d < x[0].rank(); ++d) dims.update_window_dims.push_back(d);
    return op(x[0], x[1], x[2], dims, false, false);
  });
}

CallFunction segments(Tensor (*op)(In, In, std::int64_t)) {
  return one_result(
      [op](Operands x, const Attributes& at) { return op(x[0], x[1], at.integer("count")); });
}

// The start indices are the last operands.
std::vector<In> starts_from(Operands x, std::size_t first) {
  std::vector<In> starts;
  for (const Tensor& start : x.subspan(first)) starts.emplace_back(start);
  return starts;
}

Tensor slices_at(Operands x, const Attributes& at) {
  return gather(x[0], x[1],
                {.offset_dims = {1, 2}, .start_index_map = {0, 1}, .index_vector_dim = 1},
                at.list("slice_sizes"));
}

Tensor searched(Operands x, const Attributes& at) {
  bool left = at.one_of("side", {"left", "right"}) == 0;
  return searchsorted(x[0], x[1], left ? SearchSide::kLeft : SearchSide::kRight);
}

const CallTable& by_place() {
  static const CallTable table{
      {"take", one_result([](Operands x, const Attributes& at) {
         std::int64_t dimension = at.integer("dimension");  // recorded with mode="clip"
         return take(x[0], clip(x[1], 0, x[0].dim(dimension) - 1), dimension);
       })},
      {"take_along_axis", one_result([](Operands x, const Attributes& at) {
         return take_along_axis(x[0], x[1], at.integer("dimension"));
       })},
      {"dynamic_slice", one_result([](Operands x, const Attributes& at) {
         return dynamic_slice(x[0], starts_from(x, 1), at.list("sizes"));
       })},
      {"dynamic_update_slice", one_result([](Operands x, const Attributes&) {
         return dynamic_update_slice(x[0], x[1], starts_from(x, 2));
       })},
      {"gather", one_result(slices_at)},
      {"scatter_add", scattered(scatter_add)},
      {"scatter_set", scattered(scatter_set)},
      {"scatter_multiply", scattered(scatter_multiply)},
      {"scatter_min", scattered(scatter_min)},
      {"scatter_max", scattered(scatter_max)},
      {"segment_sum", segments(segment_sum)},
      {"segment_prod", segments(segment_prod)},
      {"segment_max", segments(segment_max)},
      {"segment_min", segments(segment_min)},
  };
  return table;
}

const CallTable& by_order() {
  static const CallTable table{
      {"sort", one_result([](Operands x, const Attributes& at) {
         return sort(x[0], at.integer("dimension"), at.flag("descending"));
       })},
      {"sort_by_keys",
       [](Operands x, const Attributes& at) {
         return sort({x.begin(), x.end()}, at.integer("dimension"), false, at.integer("keys"));
       }},
      {"argsort", one_result([](Operands x, const Attributes& at) {
         return argsort(x[0], at.integer("dimension"), at.flag("descending"));
       })},
      {"top_k",
       [](Operands x, const Attributes& at) {
         auto [values, indices] = top_k(x[0], at.integer("k"));
         return Tensors{values, indices};
       }},
      {"searchsorted", one_result(searched)},
      {"isin", one_result([](Operands x, const Attributes& at) {
         return isin(x[0], x[1], at.flag("invert"));
       })},
      {"unique_counts",
       [](Operands x, const Attributes& at) {
         auto [values, counts] = unique_counts(x[0], at.integer("size"));
         return Tensors{values, counts};
       }},
      {"diff", one_result([](Operands x, const Attributes& at) {
         return diff(x[0], at.integer("dimension"), at.integer("n"));
       })},
  };
  return table;
}

}  // namespace

const CallTable& indexing_calls() {
  static const CallTable table = [] {
    CallTable all = by_place(), order = by_order();
    all.merge(order);
    return all;
  }();
  return table;
}

}  // namespace meshard::conformance
