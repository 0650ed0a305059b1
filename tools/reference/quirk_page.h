// The page of the quirks.
#pragma once
#include <string>

namespace meshard::tool {

/// docs/reference/quirks.md, from the table.
std::string quirks_page();

}  // namespace meshard::tool
