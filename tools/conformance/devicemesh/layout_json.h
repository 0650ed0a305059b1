// Reads and writes integer tuples and layouts in the golden files' form.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "meshard/layout/layout.h"

namespace meshard::conformance {

using Json = nlohmann::json;

/// Reads an integer, `null` (a hole), or an array of these. @error none of them
IntTuple tuple_of(const Json& json);
Json json_of(const IntTuple& tuple);

/// Reads `{"shape": t, "stride": t}`; a stride of null means the compact one.
Layout layout_of(const Json& json);
/// Reads an array of layouts.
std::vector<Layout> layouts_of(const Json& json);
/// `{"shape", "stride"}`.
Json json_of(const Layout& layout);
/// The same with `"values"`, unless there are more than 96.
Json json_with_values(const Layout& layout);

/// All values, in order of the index.
std::vector<std::int64_t> values_of(const Layout& layout);

}  // namespace meshard::conformance
