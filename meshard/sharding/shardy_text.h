// A sharding as Shardy writes it (openxla/shardy, `#sdy.sharding`).
#pragma once
#include <string>
#include <string_view>

#include "meshard/sharding/sharding.h"

namespace meshard {

/// `#sdy.sharding<@mesh, [{"data"}, {}, {"x", "y"}, {?}], replicated={"z"}>`.
/// @param mesh_name the symbol of the mesh in the module
std::string shardy_text(const Sharding& sharding, std::string_view mesh_name = "mesh");

/// Reads what shardy_text prints, with or without `#sdy.sharding`, as a sharding over `mesh`. The
/// symbol of the mesh is not looked at; a mesh written in place must have the same axes.
/// @error another syntax (priorities such as `{"x"}p1` included); axes that `mesh` does not have;
/// ...
Result<Sharding> parse_shardy_sharding(std::string_view text, const Mesh& mesh);

}  // namespace meshard
