// Finds the program meshard-compile.
#pragma once
#include <string>

#include "meshard/base/result.h"

namespace meshard {

/// The path of meshard-compile. If MESHARD_COMPILE is set, only that file is checked. Otherwise
/// searches, in order: the running program's folder and its `../libexec/meshard/` and `../bin/`;
/// the same around libmeshard if it is a shared library; meshard's installation; PATH.
/// @error not found, with the places that were searched
Result<std::string> find_compile_program();

}  // namespace meshard
