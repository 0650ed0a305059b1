#include "meshard/runtime/gather.h"

#include <algorithm>
#include <set>
#include <utility>

#include "meshard/graph/evaluator.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/processes/processes.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/fabric.h"
#include "meshard/runtime/internal/process_runtime.h"
#include "meshard/runtime/transfer.h"

namespace meshard {
namespace {

// A value on the devices of a mesh, and the fabric over them.
struct ArrayOnFabric {
  const DeviceArray* array = nullptr;
  Fabric* fabric = nullptr;
};

// Nothing for other storage, or none.
ArrayOnFabric on_fabric(const Storage* storage) {
  if (!storage || storage->kind() != Storage::Kind::kDevice || !storage->sharding()) return {};
  return {static_cast<const DeviceArray*>(storage),
          process_runtime().platforms.find_fabric(storage->sharding()->mesh())};
}

// The value, if the processes of its fabric send each other parts of it. Nothing if each process
// has it for itself, or a program brings it together.
ArrayOnFabric sent_array(const Tensor& tensor, SourceLocation where) {
  compute(std::span(&tensor, 1), where);
  const auto [array, fabric] = on_fabric(&computed_storage(tensor.value(), where));
  if (array && !array->gone().empty()) (void)array->to_host(where);  // throws with the reason
  if (!fabric || fabric->exchange() != RouteOptions::Exchange::kPieces) return {};
  const bool is_current = !array->buffers() || array->buffers().is_of(fabric->client().ref());
  return is_current ? ArrayOnFabric{array, fabric} : ArrayOnFabric();
}

// Whether reading the value takes a program that all its processes run.
bool needs_others(const Tensor& tensor) {
  const auto [array, fabric] = on_fabric(tensor.value().storage());
  return array && fabric && array->buffers() && !fabric->reads_alone(*array);
}

}  // namespace

HostArray gather(const Tensor& tensor, SourceLocation where) {
  const auto [array, fabric] = sent_array(tensor, where);
  if (!array) return tensor.to_host(where);
  HostArray gathered = HostArray::uninitialized(array->type());
  (void)fabric->gather(*array, Fabric::kAllProcesses, gathered.mutable_bytes(), where);
  return gathered;
}

bool is_across_processes(const Tensor& tensor) {
  const auto [array, fabric] = on_fabric(tensor.defined() ? tensor.value().storage() : nullptr);
  return array && fabric && !fabric->has_all_devices(array->sharding()->mesh());
}

std::optional<HostArray> gather_to(const Tensor& tensor, int process, SourceLocation where) {
  Processes run = processes();
  if (process < 0 || process >= run.size())
    throw_invalid(where, "[gather] there is no process ", process, " in a run of ", run.size());
  const auto [array, fabric] = sent_array(tensor, where);
  if (!array) {
    // If others have parts of it, a program of all of them gathers it.
    bool wanted = run.rank() == process;
    if (!wanted && !needs_others(tensor)) return std::nullopt;
    HostArray gathered = tensor.to_host(where);
    return wanted ? std::optional(std::move(gathered)) : std::nullopt;
  }
  HostArray whole = run.rank() == process ? HostArray::uninitialized(array->type()) : HostArray();
  (void)fabric->gather(*array, process, run.rank() == process ? whole.mutable_bytes() : nullptr,
                       where);
  return run.rank() == process ? std::optional(std::move(whole)) : std::nullopt;
}

std::vector<int> internal::processes_of_run(std::span<const Mesh> meshes) {
  std::set<int> all;
  for (const Mesh& mesh : meshes) {
    const Fabric* fabric = process_runtime().platforms.find_fabric(mesh);
    if (!fabric || fabric->exchange() != RouteOptions::Exchange::kPieces) return {};
    for (int process : processes_of(fabric->client(), mesh)) all.insert(process);
  }
  return {all.begin(), all.end()};
}

Tensor internal::in_each_process(In x, std::span<const int> processes) {
  SourceLocation where = effective_source(x.where);
  Tensor tensor = operand_tensor("transfer", x);
  const auto [array, fabric] = sent_array(tensor, where);
  if (!array) return tensor;
  const pjrt::Client& client = fabric->client();
  const Sharding& present = *array->sharding();
  if (std::ranges::includes(processes_of(client, present.mesh()), processes) &&
      is_whole_in_each_process(client, present))
    return tensor;
  std::vector<std::int64_t> firsts;
  const Processes run = meshard::processes();
  for (int rank : processes)
    firsts.push_back(run.members()[static_cast<std::size_t>(rank)].first_device);
  Mesh all = Mesh({{"process", std::ssize(firsts)}}, firsts)
                 .with_device_type(present.mesh().device_type());
  return transfer(In(tensor, where),
                  Sharding::replicated(all, static_cast<std::size_t>(tensor.rank())));
}

void internal::give_up_across_processes(const Error& error) {
  if (Fabric* fabric = process_runtime().platforms.default_fabric()) fabric->give_up(error);
}

}  // namespace meshard
