// The reference's pages, as Markdown.
#pragma once
#include <string>
#include <string_view>

#include "meshard/graph/op_def.h"

namespace meshard::tool {

/// All about one primitive: declaration, operands, derivative, sharding rule and StableHLO of its
/// example.
std::string op_page(const OpDef& op);

/// The declarations of a function or type that is no primitive; empty if the op headers have none
/// of this name.
std::string declaration_page(std::string_view name);

/// The functions made of primitives, header by header.
std::string composites_page();

/// A table of all primitives with the first sentence of each.
std::string index_page();

/// The names of all primitives, then of all composites.
std::string list_of_names();

}  // namespace meshard::tool
