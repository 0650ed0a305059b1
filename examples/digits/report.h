// What the program tells on the terminal and leaves in files.
#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>

#include "examples/digits/train.h"
#include "meshard/meshard.h"

namespace digits {

/// The line that grows while the program trains: on a terminal it is written over again and again,
/// elsewhere every tenth of the way gets a line of its own.
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

/// The mesh, a weight's sharding, the collectives of the step, and the memory on each device.
std::string describe(const Trainer& trainer, const meshard::Mesh& mesh);

/// Writes a file. @error what the system says.
meshard::Result<void> write_file(const std::string& path, const std::string& text);

/// loss.svg and sharding.svg in `folder`, which is made if it is not there.
meshard::Result<void> write_pictures(const std::string& folder, std::span<const double> losses,
                                     const Trainer& trainer);

}  // namespace digits
