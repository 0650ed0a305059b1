// Tested in meshard/runtime/loaded_program_test.cc.
#include "meshard/runtime/internal/loaded_parts.h"

#include <cstddef>
#include <utility>

#include "meshard/runtime/counters.h"

namespace meshard {
namespace {

// Loading takes 0.1 ms for each kilobyte: 3 ms for 20 parameters, 29 ms for 200.
constexpr std::size_t kMostBytes = std::size_t{64} << 10;

}  // namespace

bool LoadedParts::are_worth_loading(const pjrt::Client& client, const LoweredModule& lowered,
                                    const pjrt::LoadedExecutable& whole) {
  const pjrt::ExecutableSignature& signature = whole.signature();
  // The parts of a program that calls this process refer to its functions for all devices.
  return client.rules().loaded_parts_run_inline && whole.devices().size() > 1 &&
         !lowered.calls_host && !signature.has_collectives && !signature.reads_partition_id;
}

void LoadedParts::set_bytes(std::string bytes) {
  std::lock_guard lock(loading_);
  if (are_wanted() && bytes.size() <= kMostBytes)
    bytes_ = std::move(bytes);
  else
    left_ = -1;
}

const pjrt::LoadedExecutable* LoadedParts::count_and_load() const {
  if (left_.fetch_sub(1, std::memory_order_relaxed) > 0) return nullptr;
  // Other threads go on with the whole program while this one loads the parts.
  std::unique_lock lock(loading_, std::try_to_lock);
  if (!lock.owns_lock()) return nullptr;
  left_ = -1;
  if (loaded_) return &*loaded_;
  std::string bytes = std::exchange(bytes_, {});
  if (bytes.empty()) {
    Result<std::string> serialized = whole_.executable().serialize();
    if (!serialized.ok() || serialized->size() > kMostBytes) return nullptr;
    bytes = *std::move(serialized);
  }
  Result<pjrt::LoadedExecutable> loaded =
      client_.load_for_each(bytes, whole_.signature(), whole_.device_list());
  if (!loaded.ok()) return nullptr;  // a plugin that cannot load them launches the whole program
  internal::count(internal::counters().part_loads);
  loaded_.emplace(*std::move(loaded));
  parts_.store(&*loaded_, std::memory_order_release);
  return &*loaded_;
}

}  // namespace meshard
