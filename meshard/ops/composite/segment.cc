#include "meshard/ops/composite/segment.h"

#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/float_computation.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/maximum.h"
#include "meshard/ops/operand.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/scatter_add.h"

namespace meshard {
namespace {

// The segments of the rows of x, checked.
Tensor segments_of(std::string_view name, const Tensor& x, const In& segments, std::int64_t count,
                   SourceLocation where) {
  Tensor numbers = operand_tensor(name, segments);
  if (x.rank() == 0 || !is_integer(numbers.dtype()) || numbers.shape() != Shape{x.dim(0)})
    throw_invalid(where, "[", name, "] segments ", numbers.type(),
                  " are not one integer for each row of ", x.type());
  if (count < 0) throw_invalid(where, "[", name, "] count = ", count, " is negative");
  return numbers;
}

}  // namespace

Tensor segment_sum(In argument, In segments, std::int64_t count) {
  SourceScope line(argument.where);
  SourceLocation where = effective_source(argument.where);
  Tensor x = operand_tensor("segment_sum", argument);
  if (x.dtype() == DType::bool_) x = astype(x, kDefaultInteger);
  Tensor numbers = segments_of("segment_sum", x, segments, count, where);
  Dimensions sizes = x.shape().sizes(), window;
  sizes[0] = count;
  for (std::int64_t d = 1; d < x.rank(); ++d) window.push_back(d);
  return scatter_add(zeros(Shape(sizes), x.dtype()), reshape(numbers, {x.dim(0), 1}), x,
                     {.update_window_dims = window,
                      .inserted_window_dims = {0},
                      .scatter_dims_to_operand_dims = {0},
                      .index_vector_dim = 1});
}

Tensor segment_mean(In argument, In segments, std::int64_t count) {
  SourceScope line(argument.where);
  SourceLocation where = effective_source(argument.where);
  Tensor operand = operand_tensor("segment_mean", argument), x = for_computation(operand);
  Tensor numbers = segments_of("segment_mean", operand, segments, count, where);
  Tensor rows = segment_sum(ones(Shape{x.dim(0)}, x.dtype()), numbers, count);
  Dimensions column(static_cast<std::size_t>(x.rank()), 1);
  column[0] = count;
  Tensor means = divide(segment_sum(x, numbers, count), reshape(maximum(rows, 1), column));
  return astype(means, float_result_dtype(operand.dtype()));
}

}  // namespace meshard
