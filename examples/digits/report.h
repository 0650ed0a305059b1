// Terminal output and output files of the program.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "examples/digits/train.h"
#include "meshard/meshard.h"

namespace digits {

/// Prints the progress of training. On a terminal it overwrites one line; otherwise it prints a
/// line after each tenth of the steps.
class Progress {
 public:
  explicit Progress(std::int64_t steps);
  void operator()(std::int64_t step, double loss);

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t steps_;
  bool terminal_;
  std::int64_t tenths_ = 0;
  Clock::time_point began_ = Clock::now(), shown_{};
};

/// Describes the mesh, a weight's sharding, the step's collectives, and the memory of each device;
/// or who works when in a pipeline.
std::string describe(const Trainer& trainer, const meshard::Mesh& mesh);

/// Writes a file. @error the system's error.
meshard::Result<void> write_file(const std::string& path, const std::string& text);

/// Writes loss.svg, and sharding.svg with this sharding, to `folder`, which is created if
/// necessary.
meshard::Result<void> write_pictures(const std::string& folder, std::span<const double> losses,
                                     const meshard::Sharding& sharding);

}  // namespace digits
