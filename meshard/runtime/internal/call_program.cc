// Tested in meshard/runtime/loaded_program_test.cc.
#include "meshard/runtime/internal/call_program.h"

#include "meshard/graph/leaf.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/internal/placement.h"
#include "meshard/runtime/internal/read_whole.h"

namespace meshard {
namespace {

// The value of argument `i` where the program reads it.
StoragePtr on_its_devices(Runtime& runtime, const LoadedProgram& program, std::size_t i,
                          const Tensor& tensor, SourceLocation where) {
  const std::optional<Sharding>& sharding = program.shardings().arguments[i];
  Storage* storage = tensor.value().storage();
  if (storage->kind() == Storage::Kind::kDevice && is_on_this_client(*storage)) {
    // An equivalent sharding (an open dimension, another name of an axis) with the same shards in
    // the same order: nothing moves.
    const Sharding* present = storage->sharding();
    if (present && sharding &&
        present->is_equivalent_to(*sharding,
                                  static_cast<std::size_t>(tensor.value().type().rank())))
      return StoragePtr(storage);
    if (!storage->gone().empty()) (void)storage->to_host(where);  // throws with the reason
    // The program may have been compiled for an unplaced argument.
    if (present && sharding && !is_unplaced(tensor.value()) && tensor.value().type().rank() > 0 &&
        !present->mesh().same_devices(sharding->mesh()) && !is_whole_on(*present, sharding->mesh()))
      throw two_device_sets("jit", present->mesh(), tensor.where(), sharding->mesh(), where, where);
  }
  // Once for each value: host data is sent, and device data is copied between devices. For a
  // program on one device, all data goes through the host.
  if (sharding)
    return StoragePtr(copy_with(runtime, tensor.value(), *sharding, where).value().storage());
  const pjrt::Device& device = *program.executable().devices()[0];
  if (StoragePtr known = find_copy(*storage, sharding, &device)) return known;
  StoragePtr placed = place(runtime.platforms, program.client(),
                            read_whole(runtime, *storage, where), device, where);
  remember_copy(*storage, placed);
  return placed;
}

// Throws the error of a launch: that an argument is gone, if one is.
[[noreturn]] void fail(const Error& error, std::span<const Tensor* const> arguments,
                       std::span<const DeviceArray* const> arrays,
                       std::span<const std::string> names, SourceLocation where) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    std::string reason = arrays[i]->gone();
    if (reason.empty() || arrays[i]->is_lost()) continue;  // by this launch
    Error gone(ErrorCode::kFailedPrecondition,
               cat("[runtime] ",
                   i < names.size() ? names[i] : std::string("a value that the program uses"), ", ",
                   arrays[i]->type(), ", is gone: ", reason),
               where);
    SourceLocation made = arguments[i]->where();
    throw made.known() ? gone.with_note(cat("it was made at ", made)) : gone;
  }
  throw error.at(where);
}

}  // namespace

pjrt::Launch call_program(Runtime& runtime, const LoadedProgram& program,
                          std::span<const Tensor* const> arguments, std::span<Tensor> results,
                          SourceLocation where, std::span<const std::string> names, bool track) {
  check_not_forked(where);
  internal::HostSpan span;
  if (internal::records_events()) [[unlikely]]
    span.begin("call", program.lowered().name, where);
  std::size_t count = program.shardings().arguments.size();
  internal_check(arguments.size() == count && results.size() == program.shardings().results.size(),
                 "[runtime] wrong number of arguments or results");
  InlineVector<const DeviceArray*, 256> arrays;
  InlineVector<StoragePtr, 4> placed;
  for (std::size_t i = 0; i < count; ++i) {
    Storage& storage = computed_storage(arguments[i]->value(), where);
    const DeviceArray* array = storage.kind() == Storage::Kind::kDevice
                                   ? static_cast<const DeviceArray*>(&storage)
                                   : nullptr;
    if (!array || !program.accepts(i, *array)) [[unlikely]] {
      placed.push_back(on_its_devices(runtime, program, i, *arguments[i], where));
      array = static_cast<const DeviceArray*>(placed.back().get());
    }
    arrays.push_back(array);
  }
  std::span<const DeviceArray* const> given(arrays.data(), arrays.size());
  Result<pjrt::Launch> launched = program.launch(given, results, where, track);
  if (!launched.ok()) [[unlikely]]
    fail(launched.error(), arguments, given, names, where);
  return *std::move(launched);
}

}  // namespace meshard
