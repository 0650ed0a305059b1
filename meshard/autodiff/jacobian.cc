#include "meshard/autodiff/jacobian.h"

#include <algorithm>

#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/stack.h"
#include "meshard/ops/permute_dims.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/slice.h"

namespace meshard::internal {
namespace {

// [n, a...] and [m, b...] joined in one shape.
Shape joined_shape(const Shape& first, const Shape& second) {
  Dimensions sizes = first.sizes();
  for (std::int64_t size : second) sizes.push_back(size);
  return Shape(std::move(sizes));
}

// The first `count` dimensions behind the others.
Tensor rotated(const Tensor& x, int count) {
  Dimensions order;
  for (int d = count; d < x.shape().rank(); ++d) order.push_back(d);
  for (int d = 0; d < count; ++d) order.push_back(d);
  return permute_dims(x, std::move(order));
}

}  // namespace

std::vector<std::vector<Tensor>> matrix_of(const LinearMap& map, std::span<const Tensor> arguments,
                                           SourceLocation where) {
  InheritSource line(where);
  std::vector<std::vector<Tensor>> blocks;
  for (std::size_t j = 0; j < arguments.size(); ++j) {
    const TensorType type = arguments[j].type();
    std::int64_t size = type.shape.size();
    Tensor basis = eye(size, size, 0, type.dtype);
    std::vector<std::vector<Tensor>> rows;  // of each result
    for (std::int64_t i = 0; i < std::max<std::int64_t>(size, 1); ++i) {
      // Of an argument without elements only the shapes of the results count.
      Tensor unit = size == 0 ? zeros(type.shape, type.dtype)
                              : reshape(slice(basis, {i, 0}, {i + 1, size}), type.shape);
      std::vector<Tensor> results = map(j, unit);
      rows.resize(results.size());
      for (std::size_t k = 0; k < results.size(); ++k) rows[k].push_back(results[k]);
    }
    blocks.resize(rows.size());
    for (std::size_t k = 0; k < rows.size(); ++k) {
      Shape shape = joined_shape(type.shape, rows[k].front().shape());
      blocks[k].push_back(size == 0 ? zeros(shape, rows[k].front().dtype())
                                    : reshape(stack(rows[k]), shape));
    }
  }
  return blocks;
}

std::vector<std::vector<Tensor>> reverse_blocks(std::span<const Tensor> outputs,
                                                std::span<const Tensor> inputs,
                                                SourceLocation where) {
  for (const Tensor& output : outputs)
    if (!is_floating(output.dtype(where)))
      throw_invalid(where, "[jacrev] a result is ", output.type(), ", not floating-point");
  LinearMap pull = [&](std::size_t i, const Tensor& cotangent) {
    return backward(outputs.subspan(i, 1), {&cotangent, 1}, inputs, where);
  };
  std::vector<std::vector<Tensor>> by_input = matrix_of(pull, outputs, where), blocks;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    blocks.emplace_back();
    for (std::vector<Tensor>& row : by_input) blocks[i].push_back(row[i]);
  }
  return blocks;
}

std::vector<std::vector<Tensor>> forward_blocks(std::span<const Tensor> outputs,
                                                std::span<const Tensor> inputs,
                                                SourceLocation where) {
  for (const Tensor& output : outputs)
    if (!is_floating(output.dtype(where)))
      throw_invalid(where, "[jacfwd] a result is ", output.type(), ", not floating-point");
  PushForward push(outputs, inputs, where);
  LinearMap map = [&](std::size_t j, const Tensor& tangent) {
    std::vector<Tensor> tangents(inputs.size());
    tangents[j] = tangent;
    return push(tangents, where);
  };
  std::vector<std::vector<Tensor>> blocks = matrix_of(map, inputs, where);
  // The argument's dimensions come first there, and last in a Jacobian.
  for (std::vector<Tensor>& row : blocks)
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = rotated(row[j], inputs[j].shape().rank());
  return blocks;
}

}  // namespace meshard::internal
