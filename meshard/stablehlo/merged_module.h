// A module as a part of another one.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// A value: what another module needs to call a module's main function.
struct MergedModule {
  /// The name of the function that was `main`. Its arguments and results have no attributes.
  std::string entry;
  /// The text of the functions, all private, and of the meshes that the other module does not have.
  std::string functions;
  /// The lines `#alias = ...` that the functions refer to; they are not part of a module's body.
  std::string aliases;
};

/// Makes a module a part of another one: functions and aliases get new names, which begin with
/// `prefix` and a dot or underscore.
/// @param text with a function `main`
/// @param prefix letters and digits with which no name in the other module begins
/// @param meshes the names that meshes of this module have in the other one; the others become a
/// part of it, under new names
/// @error data loss: the text cannot be parsed, or has no function `main`
Result<MergedModule> merge_module(std::string_view text, std::string_view prefix,
                                  const std::map<std::string, std::string>& meshes);

}  // namespace meshard::stablehlo
