// Tested in tests/conformance/batch_test.cc.
#include "meshard/ops/definition/batch_rule.h"

#include <algorithm>

#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/record.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/slicing.h"

namespace meshard {

Shape batched_shape(std::int64_t size, const Shape& shape) {
  return Shape(with_entry(size, shape.sizes()));
}

Dimensions behind_batch(Dimensions dimensions) {
  for (std::int64_t& d : dimensions) ++d;
  return dimensions;
}

Dimensions with_batch(std::int64_t first, const Dimensions& dimensions) {
  return with_entry(first, behind_batch(dimensions));
}

Dimensions with_entry(std::int64_t first, const Dimensions& entries) {
  Dimensions out{first};
  for (std::int64_t each : entries) out.push_back(each);
  return out;
}

Tensor repeated_for_batch(const Tensor& x, std::int64_t size) {
  Dimensions dimensions;
  for (int d = 0; d < x.shape().rank(); ++d) dimensions.push_back(d + 1);
  return broadcast_in_dim(In(x, x.where()), batched_shape(size, x.shape()), std::move(dimensions));
}

Tensor batched_operand(const BatchCall& call, std::size_t i) {
  return call.batched[i] ? call.operands[i] : repeated_for_batch(call.operands[i], call.size);
}

std::vector<Tensor> batched_operands(const BatchCall& call) {
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < call.operands.size(); ++i)
    operands.push_back(batched_operand(call, i));
  return operands;
}

void record_batched(const BatchCall& call, std::unique_ptr<const Attributes> attributes,
                    std::span<const Tensor> operands, std::span<Tensor> results) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& operand : operands) pointers.push_back(&operand);
  Tensor first = record(call.node.op(), std::move(attributes),
                        std::span<const Tensor* const>(pointers), call.node.where());
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] = Tensor(Value(first.value().node(), static_cast<std::uint32_t>(i)));
}

void batch_unchanged(const BatchCall& call, std::span<Tensor> results) {
  const Attributes* attributes = call.node.attributes();
  record_batched(call, attributes ? attributes->clone() : nullptr, batched_operands(call), results);
}

void batch_one_by_one(const BatchCall& call, std::span<Tensor> results) {
  std::vector<std::vector<Tensor>> made(results.size());
  for (std::int64_t member = 0; member < call.size; ++member) {
    std::vector<Tensor> operands(call.operands.begin(), call.operands.end());
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (!call.batched[i]) continue;
      Dimensions start(static_cast<std::size_t>(operands[i].rank()), 0);
      Dimensions stop = operands[i].shape().sizes();
      start[0] = member;
      stop[0] = member + 1;
      operands[i] = reshape(slice(operands[i], start, stop), call.member(i).shape);
    }
    std::vector<Tensor> of_member(results.size());
    const Attributes* attributes = call.node.attributes();
    record_batched(call, attributes ? attributes->clone() : nullptr, operands, of_member);
    for (std::size_t i = 0; i < results.size(); ++i)
      made[i].push_back(reshape(of_member[i], batched_shape(1, of_member[i].shape())));
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    results[i] =
        call.size > 0
            ? concat(made[i], 0)
            : filled({call.node.type(static_cast<std::uint32_t>(i)).dtype,
                      batched_shape(0, call.node.type(static_cast<std::uint32_t>(i)).shape)},
                     0);
}

Sharding with_batch_dimension(const Sharding& member, DimensionSpec batch, std::size_t at) {
  std::vector<DimensionSpec> dimensions = member.spec().dimensions();
  dimensions.insert(dimensions.begin() + static_cast<std::ptrdiff_t>(at), std::move(batch));
  return Sharding(member.mesh(), PartitionSpec(std::move(dimensions)))
      .with_replicated(member.replicated_axes())
      .with_unreduced(member.unreduced_axes());
}

DimensionSpec explicit_batch(const Tensor& batched, const Sharding& beside) {
  const Sharding* present = explicit_sharding(batched.value());
  if (!present || present->rank() == 0 || !(present->mesh() == beside.mesh())) return none;
  for (const AxisRef& axis : present->axes(0))
    for (std::size_t d = 0; d < beside.rank(); ++d)
      for (const AxisRef& other : beside.axes(d))
        if (axis.overlaps(other)) return none;
  return DimensionSpec(present->axes(0));
}

}  // namespace meshard
