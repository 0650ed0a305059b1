// The pages of the reference, as Markdown.
#pragma once
#include <string>
#include <string_view>

#include "meshard/graph/op_def.h"

namespace meshard::tool {

/// The page of one primitive: declaration, operands, derivative, sharding rule, and the StableHLO
/// of its example.
std::string op_page(const OpDef& op);

/// The declarations of a function or type that is not a primitive; empty if the op headers do not
/// declare the name.
std::string declaration_page(std::string_view name);

/// The composite functions, header by header.
std::string composites_page();

/// A table of all primitives with the first sentence of each.
std::string index_page();

/// The names of all primitives, followed by those of all composites.
std::string list_of_names();

}  // namespace meshard::tool
