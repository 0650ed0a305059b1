// Command-line options of the program.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/meshard.h"

namespace digits {

struct Options {
  std::int64_t data_devices = 2, model_devices = 4;
  std::vector<std::int64_t> devices;  // device ids; empty: 0, 1, ...
  std::int64_t steps = 600;
  std::uint64_t seed = 1;
  std::string data, out = "demo-out";
  std::string losses;  // file for all losses; empty: none
  bool help = false;

  meshard::Mesh mesh() const;
  /// Number of devices that the client must have for the mesh, at least 8.
  int device_count() const;
};

/// The text of --help.
const char* usage();

/// @error invalid argument, naming the argument that is wrong.
meshard::Result<Options> parse_options(int count, const char* const* arguments);

}  // namespace digits
