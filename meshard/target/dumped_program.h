// What the compiler writes about a compile into a folder, besides the executable.
#pragma once
#include <string>

#include "meshard/pjrt/compile_options.h"
#include "meshard/target/compiled.h"

namespace meshard {

/// Asks the compiler to write, into `folder`, the module after sharding propagation and the buffer
/// assignment, as protos. Options that are set already stay.
void ask_for_dumps(const std::string& folder, pjrt::CompileOptions& options);

/// Reads them; what the compiler did not write stays empty.
void read_dumps(const std::string& folder, Compiled& to);

}  // namespace meshard
