// Shared by the benchmarks that run programs.
#pragma once
#include <span>
#include <vector>

#include "meshard/meshard.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard::bench {

/// The shards of a computed tensor.
inline const DeviceArray& shards_of(const Tensor& tensor) {
  return static_cast<const DeviceArray&>(*tensor.value().storage());
}

/// Waits until every device has computed its part of `tensor`.
inline void wait_for(const Tensor& tensor) { shards_of(tensor).wait(SourceLocation::current()); }

/// The module text of the newest program of a jitted function.
template <class F>
const std::string& module_of(const Jit<F>& function) {
  return view_of(*function.programs().back()).program.lowered().text;
}

/// The shape of one shard of each tensor.
inline std::vector<std::vector<std::int64_t>> shard_shapes(std::span<const Tensor> tensors) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const Tensor& tensor : tensors) {
    std::span<const std::int64_t> sizes = shards_of(tensor).buffers()[0].dimensions();
    shapes.emplace_back(sizes.begin(), sizes.end());
  }
  return shapes;
}

}  // namespace meshard::bench
