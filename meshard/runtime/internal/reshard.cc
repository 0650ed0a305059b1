// Tested in meshard/runtime/internal/device_to_device_test.cc.
#include "meshard/runtime/internal/reshard.h"

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/identity.h"
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

Tensor reshard(Runtime& runtime, const Value& value, const Sharding& target, SourceLocation where) {
  const auto* array = static_cast<const DeviceArray*>(value.storage());
  Program program;
  program.name = "reshard";
  {
    internal::TraceScope scope;
    Tensor given = make_parameter(value.type(), closed(*array->sharding()), where);
    Tensor result = sharding_constraint(In(given, where), closed(target));
    program.graph =
        Graph::build(std::span(&given.value(), 1), std::span(&result.value(), 1), scope.trace());
  }
  std::shared_ptr<const LoadedProgram> loaded = runtime.programs.get(program, where);
  const std::optional<Sharding>& read = loaded->shardings().arguments[0];
  internal_check(loaded->accepts(0, *array) ||
                     (read && array->sharding()->is_equivalent_to(
                                  *read, static_cast<std::size_t>(value.type().rank()))),
                 "[runtime] the value is not where the program reads it");
  Tensor result;
  Result<pjrt::Launch> launched =
      loaded->launch(std::span(&array, 1), std::span(&result, 1), where);
  if (!launched.ok()) throw launched.error().at(where);
  return result;
}

}  // namespace meshard
