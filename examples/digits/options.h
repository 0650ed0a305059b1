// Command-line options of the program.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/meshard.h"

namespace digits {

struct Options {
  std::int64_t data_devices = 2, model_devices = 4;
  // With more than one stage, the mesh is that of each worker of the pipeline.
  std::int64_t stages = 1, chunks = 2, microbatches = 8;
  std::string schedule = "1f1b";
  std::vector<std::int64_t> devices;  // device ids; empty: 0, 1, ...
  std::int64_t steps = 600;
  std::uint64_t seed = 1;
  std::string data, out = "demo-out";
  std::string losses;  // file for all losses; empty: none
  std::string save;    // file for the trained parameters; empty: none
  bool help = false;

  /// The sets of devices that work at the same time: one for each stage, or for `chunks` stages of
  /// an interleaved pipeline.
  std::int64_t workers() const { return schedule == "interleaved" ? stages / chunks : stages; }
  /// The mesh of a worker: of all devices, if there is one stage.
  meshard::Mesh mesh(std::int64_t worker = 0) const;
  /// Number of devices that the client must have for the meshes, at least 8.
  int device_count() const;
};

/// The text of --help.
const char* usage();

/// @error invalid argument, naming the argument that is wrong.
meshard::Result<Options> parse_options(int count, const char* const* arguments);

}  // namespace digits
