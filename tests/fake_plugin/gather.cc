// Launches of the fake plugin over several processes: a result that is a whole argument is gathered
// from the shards of all processes.
#include "tests/fake_plugin/state.h"

namespace fake {
namespace {

constexpr int kWait = 60'000;

std::string key_of(int launch, size_t result, int64_t device) {
  return "fake all-gather " + std::to_string(launch) + "/" + std::to_string(result) + "/" +
         std::to_string(device);
}

// Copies a tile to its place in the whole value, one row of the last dimension at a time.
void put_tile(const std::string& shard, const Type& type, const Cut& cut, int64_t device,
              char* whole) {
  std::vector<int64_t> tile = cut.tile(device);
  size_t rank = type.dims.size();
  int64_t row = rank == 0 ? 1 : type.dims.back(), rows = 1;
  for (size_t d = 0; d + 1 < rank; ++d) rows *= type.dims[d];
  for (int64_t r = 0; r < rows; ++r) {
    int64_t offset = 0, rest = r, stride = 1;
    for (size_t d = rank; d-- > 0;) {
      int64_t index = 0;
      if (d + 1 < rank) {
        index = rest % type.dims[d];
        rest /= type.dims[d];
      }
      offset += (tile[d] * type.dims[d] + index) * stride;
      stride *= cut.dims[d];
    }
    memcpy(whole + offset * type.bytes, shard.data() + r * row * type.bytes,
           static_cast<size_t>(row * type.bytes));
  }
}

}  // namespace

bool is_gathered(const Program& program, size_t result) {
  return result < program.parameters.size() &&
         program.result_cuts[result].dims == program.parameter_cuts[result].dims &&
         program.results[result].dims == program.result_cuts[result].dims &&
         program.parameters[result].element == program.results[result].element &&
         program.parameters[result].dims != program.results[result].dims;
}

PJRT_Error* gather(const PJRT_LoadedExecutable_Execute_Args* args, size_t result,
                   std::string& whole) {
  const PJRT_LoadedExecutable& executable = *args->executable;
  const Type& type = executable.program->parameters[result];
  const Cut& cut = executable.program->parameter_cuts[result];
  const Exchange& exchange = *executable.client->exchange;
  int launch = args->options->launch_id;
  for (size_t d = 0; d < executable.devices.size(); ++d) {
    const Bytes& shard = *args->argument_lists[d][result]->data;
    if (PJRT_Error* error =
            exchange.put(key_of(launch, result, executable.logical(executable.devices[d])),
                         std::string(shard.data, shard.size)))
      return error;
  }
  whole.resize(static_cast<size_t>(executable.program->results[result].size()));
  for (size_t device = 0; device < executable.all_devices.size(); ++device) {
    auto logical = static_cast<int64_t>(device);
    std::string shard;
    if (PJRT_Error* error = exchange.get(key_of(launch, result, logical), kWait, shard))
      return error;
    if (shard.size() != static_cast<size_t>(type.size()))
      return fail(13, "a shard of another process has another size");
    put_tile(shard, type, cut, logical, whole.data());
  }
  return nullptr;
}

}  // namespace fake
