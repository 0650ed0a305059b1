// Command-line options of the program.
#pragma once
#include <cstdint>
#include <string>

#include "examples/gpt/model.h"
#include "examples/serve/server.h"
#include "meshard/meshard.h"

namespace serve {

struct Options {
  std::string weights;        // a safetensors file, an index or a folder
  std::string make;           // file to write untrained weights to; empty: none
  std::string prompts = "-";  // file with prompts; "-": standard input
  std::string module;         // file to write the StableHLO module to; empty: none
  std::int64_t data_devices = 1, model_devices = 1;
  Serving serving;
  std::int64_t context = 0;  // 0: the context stored with the weights
  gpt::Sizes sizes;          // for untrained weights, and for a module without weights
  bool help = false;

  meshard::Mesh mesh() const;
};

/// The text of --help.
const char* usage();

/// @error invalid argument, naming the argument that is wrong.
meshard::Result<Options> parse_options(int count, const char* const* arguments);

}  // namespace serve
