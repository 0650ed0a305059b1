#include "meshard/autodiff/jacobian.h"

#include "meshard/ops/all.h"
#include "meshard/ops/batching/vmap.h"

namespace meshard::internal {
namespace {

// Concatenates [n, a...] and [m, b...] to one shape.
Shape joined_shape(const Shape& first, const Shape& second) {
  Dimensions sizes = first.sizes();
  for (std::int64_t size : second) sizes.push_back(size);
  return Shape(std::move(sizes));
}

// Moves the first `count` dimensions to the end.
Tensor rotated(const Tensor& x, int count) {
  Dimensions order;
  for (int d = count; d < x.shape().rank(); ++d) order.push_back(d);
  for (int d = 0; d < count; ++d) order.push_back(d);
  return permute_dims(x, std::move(order));
}

// The results of `map` for every unit vector of argument j, along a new dimension 0.
std::vector<Tensor> all_rows(const LinearMap& map, std::size_t j, const TensorType& type,
                             SourceLocation where) {
  std::int64_t size = type.shape.size();
  if (size == 0) {  // only the shapes of the results matter
    std::vector<Tensor> rows;
    for (const Tensor& result : map(j, zeros(type.shape, type.dtype)))
      rows.push_back(zeros(joined_shape(Shape{0}, result.shape()), result.dtype()));
    return rows;
  }
  Tensor basis = reshape(eye(size, size, 0, type.dtype), joined_shape(Shape{size}, type.shape));
  auto row = [&](const Tensor& unit) { return map(j, unit); };
  try {
    return vmap(row, {}, where)(basis);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnimplemented) throw;
  }
  std::vector<std::vector<Tensor>> each;  // for each result, its rows
  for (const Tensor& unit : unstack(basis)) {
    std::vector<Tensor> results = row(unit);
    each.resize(results.size());
    for (std::size_t k = 0; k < results.size(); ++k) each[k].push_back(results[k]);
  }
  std::vector<Tensor> rows;
  for (const std::vector<Tensor>& parts : each) rows.push_back(stack(parts));
  return rows;
}

}  // namespace

std::vector<std::vector<Tensor>> matrix_of(const LinearMap& map, std::span<const Tensor> arguments,
                                           SourceLocation where) {
  internal::InheritSource line(where);
  std::vector<std::vector<Tensor>> blocks;
  for (std::size_t j = 0; j < arguments.size(); ++j) {
    const TensorType type = arguments[j].type();
    std::vector<Tensor> rows = all_rows(map, j, type, where);
    blocks.resize(rows.size());
    for (std::size_t k = 0; k < rows.size(); ++k) {
      Dimensions own = rows[k].shape().sizes();
      own.erase(own.begin());
      blocks[k].push_back(reshape(rows[k], joined_shape(type.shape, Shape(std::move(own)))));
    }
  }
  return blocks;
}

std::vector<std::vector<Tensor>> reverse_blocks(std::span<const Tensor> outputs,
                                                std::span<const Tensor> inputs,
                                                SourceLocation where) {
  for (const Tensor& output : outputs)
    if (!is_floating(output.dtype(where)))
      throw_invalid(where, "[jacrev] every result must be floating-point, not ", output.type());
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
      throw_invalid(where, "[jacfwd] every result must be floating-point, not ", output.type());
  PushForward push(outputs, inputs, where);
  LinearMap map = [&](std::size_t j, const Tensor& tangent) {
    std::vector<Tensor> tangents(inputs.size());
    tangents[j] = tangent;
    return push(tangents, where);
  };
  std::vector<std::vector<Tensor>> blocks = matrix_of(map, inputs, where);
  // matrix_of puts the argument's dimensions first; a Jacobian has them last.
  for (std::vector<Tensor>& row : blocks)
    for (std::size_t j = 0; j < row.size(); ++j) row[j] = rotated(row[j], inputs[j].shape().rank());
  return blocks;
}

}  // namespace meshard::internal
