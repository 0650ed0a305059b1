// Tested in meshard/runtime/internal/device_to_device_test.cc.
#include "meshard/runtime/internal/reshard.h"

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/sharding_constraint.h"
#include "meshard/runtime/device_array.h"

namespace meshard {
namespace {

// The same sharding with all dimensions closed.
Sharding closed(const Sharding& sharding) {
  std::vector<DimensionSpec> dimensions;
  for (std::size_t d = 0; d < sharding.rank(); ++d) dimensions.emplace_back(sharding.axes(d));
  return Sharding(sharding.mesh(), PartitionSpec(std::move(dimensions)))
      .with_unreduced(sharding.unreduced_axes());
}

}  // namespace

std::vector<Tensor> run_in_place(Runtime& runtime, std::string name, const Value& value,
                                 SourceLocation where,
                                 const std::function<std::vector<Tensor>(const Tensor&)>& record) {
  const auto* array = static_cast<const DeviceArray*>(value.storage());
  Program program;
  program.name = std::move(name);
  {
    internal::TraceScope scope;
    std::optional<Sharding> sharding;
    if (array->sharding()) sharding = closed(*array->sharding());
    Tensor given = make_parameter(value.type(), std::move(sharding), where);
    std::vector<Value> results;
    for (const Tensor& result : record(given)) results.push_back(result.value());
    program.graph = Graph::build(std::span(&given.value(), 1), results, scope.trace());
  }
  std::shared_ptr<const LoadedProgram> loaded = runtime.programs.get(program, where);
  const std::optional<Sharding>& read = loaded->shardings().arguments[0];
  internal_check(
      loaded->accepts(0, *array) || (array->sharding() && read &&
                                     array->sharding()->is_equivalent_to(
                                         *read, static_cast<std::size_t>(value.type().rank()))),
      "[runtime] the value is not where the program reads it");
  std::vector<Tensor> results(program.graph.results().size());
  Result<pjrt::Launch> launched = loaded->launch(std::span(&array, 1), results, where);
  if (!launched.ok()) throw launched.error().at(where);
  return results;
}

StoragePtr Runtime::replicate(const DeviceArray& array, SourceLocation where) {
  Tensor value = make_array(array.type(), StoragePtr(const_cast<DeviceArray*>(&array)), where);
  Sharding replicated =
      Sharding::replicated(array.sharding()->mesh(), static_cast<std::size_t>(array.type().rank()));
  return StoragePtr(reshard(*this, value.value(), replicated, where).value().storage());
}

Tensor reshard(Runtime& runtime, const Value& value, const Sharding& target, SourceLocation where) {
  return run_in_place(runtime, "reshard", value, where, [&](const Tensor& given) {
    return std::vector{sharding_constraint(In(given, where), closed(target))};
  })[0];
}

}  // namespace meshard
