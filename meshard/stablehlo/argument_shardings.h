// Shardings for the arguments of a module.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// The text with these shardings for arguments of `main`, in place of its own. An argument
/// that shares its memory with a result of another sharding can no longer do so; it is donated.
/// @param shardings by position: `#sdy.sharding<@mesh, [{"x"}]>`
/// @param meshes lines of additional meshes, `sdy.mesh @other = <["x"=2]>`; empty: none
/// @error data loss: the text cannot be parsed, or has no function `main` with these arguments
Result<std::string> with_argument_shardings(std::string_view text,
                                            const std::map<std::size_t, std::string>& shardings,
                                            std::string_view meshes);

}  // namespace meshard::stablehlo
