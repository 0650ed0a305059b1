// Describes the first difference of two JSON values in one readable line.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace meshard::conformance {

/// `expect.stride[1]: ours 4, recorded 3`; empty if they are equal.
std::string first_difference(const nlohmann::json& ours, const nlohmann::json& recorded);

/// `value` on one line; the middle of a long text is omitted.
std::string shortened(const nlohmann::json& value);

}  // namespace meshard::conformance
