#include "meshard/ops/composite/segment.h"

#include <utility>

#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {
using namespace internal;
namespace {

// The segment of each row of x, checked.
Tensor segments_of(std::string_view name, const Tensor& x, const In& segments, std::int64_t count,
                   SourceLocation where) {
  Tensor numbers = operand_tensor(name, segments);
  if (x.rank() == 0 || !is_integer(numbers.dtype()) || numbers.shape() != Shape{x.dim(0)})
    throw_invalid(where, "[", name, "] segments ", numbers.type(),
                  " must be one integer for each row of ", x.type());
  if (count < 0) throw_invalid(where, "[", name, "] count = ", count, " is negative");
  return numbers;
}

Tensor countable(std::string_view name, const In& x) {
  Tensor rows = operand_tensor(name, x);
  return rows.dtype() == DType::bool_ ? astype(rows, kDefaultInteger) : rows;
}

// Combines the rows of each segment by a scatter; `nothing` is the result without rows.
Tensor combined_rows(std::string_view name,
                     Tensor (*scatter)(In, In, In, ScatterDimensions, bool, bool),
                     HostArray nothing, const Tensor& x, const In& segments, std::int64_t count) {
  Tensor numbers = segments_of(name, x, segments, count, effective_source(SourceLocation{}));
  Dimensions sizes = x.shape().sizes(), window;
  sizes[0] = count;
  for (std::int64_t d = 1; d < x.rank(); ++d) window.push_back(d);
  return scatter(broadcast_to(constant(std::move(nothing)), Shape(sizes)),
                 reshape(numbers, {x.dim(0), 1}), x,
                 {.update_window_dims = window,
                  .inserted_window_dims = {0},
                  .scatter_dims_to_operand_dims = {0},
                  .index_vector_dim = 1},
                 false, false);
}

Tensor extreme_rows(std::string_view name,
                    Tensor (*scatter)(In, In, In, ScatterDimensions, bool, bool),
                    HostArray (*nothing)(DType), const In& argument, const In& segments,
                    std::int64_t count) {
  Tensor x = operand_tensor(name, argument);
  if (x.dtype() == DType::bool_ || is_complex(x.dtype()))
    throw_invalid(effective_source(argument.where), "[", name, "] takes integers or floats, not ",
                  x.type());
  return combined_rows(name, scatter, nothing(x.dtype()), x, segments, count);
}

}  // namespace

Tensor segment_sum(In x, In segments, std::int64_t count) {
  SourceScope line(x.where);
  Tensor rows = countable("segment_sum", x);
  return combined_rows("segment_sum", scatter_add, HostArray::zeros({rows.dtype(), {}}), rows,
                       segments, count);
}

Tensor segment_prod(In x, In segments, std::int64_t count) {
  SourceScope line(x.where);
  Tensor rows = countable("segment_prod", x);
  return combined_rows("segment_prod", scatter_multiply, HostArray::full({rows.dtype(), {}}, 1),
                       rows, segments, count);
}

Tensor segment_max(In x, In segments, std::int64_t count) {
  SourceScope line(x.where);
  return extreme_rows("segment_max", scatter_max, lowest_of, x, segments, count);
}

Tensor segment_min(In x, In segments, std::int64_t count) {
  SourceScope line(x.where);
  return extreme_rows("segment_min", scatter_min, highest_of, x, segments, count);
}

Tensor segment_mean(In argument, In segments, std::int64_t count) {
  SourceScope line(argument.where);
  SourceLocation where = effective_source(argument.where);
  Tensor operand = operand_tensor("segment_mean", argument), x = for_computation(operand);
  Tensor numbers = segments_of("segment_mean", operand, segments, count, where);
  Tensor rows = segment_sum(ones(Shape{x.dim(0)}, real_dtype(x.dtype())), numbers, count);
  Dimensions column(static_cast<std::size_t>(x.rank()), 1);
  column[0] = count;
  Tensor means = divide(segment_sum(x, numbers, count), reshape(maximum(rows, 1), column));
  return astype(means, float_result_dtype(operand.dtype()));
}

}  // namespace meshard
