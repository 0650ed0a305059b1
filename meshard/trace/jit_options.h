// Options and statistics of jit().
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/graph/unrolled_layers.h"
#include "meshard/ops/rolling/rolling_advice.h"

namespace meshard {

/// Options of jit().
struct JitOptions {
  /// The name of the module in messages, dumps and profiles. Default: "main".
  std::string name = "main";
  /// Positions of arguments whose memory the results may reuse. These arguments cannot be used
  /// after the call. Default: none.
  std::vector<std::size_t> donate = {};
  /// The maximum number of programs to keep, at least 1 (default: 256). Beyond it, the least
  /// recently called program is evicted, and compiled again when it is called.
  std::size_t most_programs = 256;
  /// Keeps programs that took long to compile on disk, and looks for them there (disk_cache.h).
  /// Default: true. `false` for programs that no later process will need.
  bool keep_on_disk = true;
};

/// Statistics of a jitted function. The eighth trace produces advice (set_advice_handler()) that
/// gives the last reason.
struct JitStats {
  std::uint64_t calls = 0;
  std::uint64_t traces = 0;
  /// Why each trace after the first was needed, compared with the one before:
  /// `argument 0.w is f32[8,4], was f32[8,8]`; `argument 0.step is 7, was 6`. The last 100 reasons.
  std::vector<std::string> reasons;
  /// Runs of equal layers in the programs. With an nn::Layers or repeat(), each run would be
  /// recorded and compiled as one layer.
  std::vector<RollingAdvice> rolling;
  /// Layers of an nn::Layers that did not become one loop, and why.
  std::vector<UnrolledLayers> unrolled;
};

}  // namespace meshard
