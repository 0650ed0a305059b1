// What the command line of the program says.
#pragma once
#include <cstdint>
#include <string>

#include "examples/gpt/model.h"
#include "examples/serve/server.h"
#include "meshard/meshard.h"

namespace serve {

struct Options {
  std::string weights;        // a safetensors file, an index, a folder
  std::string make;           // a file to write untrained weights to; empty: none
  std::string prompts = "-";  // a file; "-": standard input
  std::string module;         // a file to write the StableHLO module to; empty: none
  std::int64_t data_devices = 1, model_devices = 1;
  Serving serving;
  std::int64_t context = 0;  // 0: what the weights say
  gpt::Sizes sizes;          // of made weights, and of a module without weights
  bool help = false;

  meshard::Mesh mesh() const;
};

/// The text of --help.
const char* usage();

/// @error invalid argument, naming the argument that is wrong.
meshard::Result<Options> parse_options(int count, const char* const* arguments);

}  // namespace serve
