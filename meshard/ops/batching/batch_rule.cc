// Tested in tests/conformance/batch_test.cc.
#include "meshard/ops/batching/batch_rule.h"

#include "meshard/graph/explicit_sharding.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "meshard/ops/definition/operand.h"

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

Tensor member_operand(const BatchCall& call, std::size_t i, std::int64_t member) {
  const Tensor& all = call.operands[i];
  return call.batched[i] ? reshape(slice_along(all, 0, member, member + 1), call.member(i).shape)
                         : all;
}

void record_batched(const BatchCall& call, std::unique_ptr<const Attributes> attributes,
                    std::span<const Tensor> operands, std::span<Tensor> results) {
  std::vector<Tensor> made =
      record_all(call.node.op(), std::move(attributes), operands, call.node.where());
  std::move(made.begin(), made.end(), results.begin());
}

void batch_unchanged(const BatchCall& call, std::span<Tensor> results) {
  const Attributes* attributes = call.node.attributes();
  record_batched(call, attributes ? attributes->clone() : nullptr, batched_operands(call), results);
}

void batch_one_by_one(const BatchCall& call, std::span<Tensor> results) {
  std::vector<std::vector<Tensor>> made(results.size());
  for (std::int64_t member = 0; member < call.size; ++member) {
    std::vector<Tensor> operands, of_member(results.size());
    for (std::size_t i = 0; i < call.operands.size(); ++i)
      operands.push_back(member_operand(call, i, member));
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
      .with_unreduced_of(member);
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
