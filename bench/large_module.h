// A compiled module of any size, made without a compiler.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace meshard::bench {

/// The bytes of an HLO module of about this many instructions, for 256 devices.
std::string large_module(std::int64_t instructions);

/// What the report of a module was computed from.
struct ExplainedModule {
  std::size_t steps = 0, collectives = 0;
  double seconds = 0;
};

/// Reads a module and computes all parts of its report, for a mesh of 64x4 devices.
ExplainedModule explain_bytes(const std::string& bytes);

}  // namespace meshard::bench
