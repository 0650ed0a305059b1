// A sharding as Shardy writes it (openxla/shardy, `#sdy.sharding`).
#pragma once
#include <string>
#include <string_view>

#include "meshard/sharding/sharding.h"

namespace meshard {

/// The Shardy attribute: `#sdy.sharding<@mesh, [{"data"}, {}, {"x", "y"}, {?}], replicated={"z"}>`.
/// @param mesh_name the symbol of the mesh in the module
std::string shardy_text(const Sharding& sharding, std::string_view mesh_name = "mesh");

/// Parses the output of shardy_text, with or without `#sdy.sharding`, as a sharding over `mesh`.
/// The mesh symbol is ignored; an inline mesh must have the same axes as `mesh`.
/// @error other syntax, including priorities such as `{"x"}p1`; the errors of the Sharding
/// constructor.
Result<Sharding> parse_shardy_sharding(std::string_view text, const Mesh& mesh);

}  // namespace meshard
