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

  meshard::Mesh mesh() const;
};

/// The text of --help.
const char* usage();

/// @error invalid argument, naming the argument that is wrong.
meshard::Result<Options> parse_options(int count, const char* const* arguments);

}  // namespace gpt
