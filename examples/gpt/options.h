// Command-line options of the program.
#pragma once
#include <cstdint>
#include <string>

#include "examples/gpt/model.h"
#include "meshard/meshard.h"

namespace gpt {

struct Options {
  std::int64_t data_devices = 1, model_devices = 1;
  bool sequence = false;
  // With more than one stage, the mesh is that of each worker of the pipeline.
  std::int64_t stages = 1, chunks = 2, microbatches = 8;
  std::string schedule = "1f1b";
  Sizes sizes;
  std::int64_t steps = 1000, batch = 16, context = 64;
  double rate = 2e-3;
  std::uint64_t seed = 1;
  std::string data;               // a file; empty: license texts of the system
  std::string losses, module;     // output files; empty: none
  std::string checkpoint;         // to save to and resume from; empty: none
  std::int64_t save_every = 100;  // steps
  bool resume = false;
  std::int64_t sample = 300;  // bytes
  std::string prompt = "You may ";
  double temperature = 0.5;
  bool help = false;

  /// The sets of devices that work at the same time: one for each stage, or for `chunks` stages of
  /// an interleaved pipeline.
  std::int64_t workers() const { return schedule == "interleaved" ? stages / chunks : stages; }
  /// The mesh of a worker: of all devices, if there is one stage.
  meshard::Mesh mesh(std::int64_t worker = 0) const;
  /// All devices that the program needs.
  std::int64_t device_count() const;
};

/// The text of --help.
const char* usage();

/// @error invalid argument, naming the argument that is wrong.
meshard::Result<Options> parse_options(int count, const char* const* arguments);

}  // namespace gpt
