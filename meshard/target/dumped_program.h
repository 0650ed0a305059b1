// Compiler dumps: files that the compiler writes besides the executable.
#pragma once
#include <string>

#include "meshard/pjrt/compile_options.h"
#include "meshard/target/compiled.h"

namespace meshard {

/// Sets compiler options that dump protos into `folder`. These are the module after sharding
/// propagation and the buffer assignment. Options that are already set keep their values.
void ask_for_dumps(const std::string& folder, pjrt::CompileOptions& options);

/// Reads the dumps into `to`; missing dumps leave its fields empty.
void read_dumps(const std::string& folder, Compiled& to);

}  // namespace meshard
