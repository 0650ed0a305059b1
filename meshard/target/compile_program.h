// Where the program meshard-compile is.
#pragma once
#include <string>

#include "meshard/base/result.h"

namespace meshard {

/// Its path: MESHARD_COMPILE; beside the running program; `../libexec/meshard/` and `../bin/` from
/// the running program and from libmeshard if that is a shared library; where meshard was
/// installed; PATH.
/// @error not found, listing the places
Result<std::string> find_compile_program();

}  // namespace meshard
