// Where two JSON values differ first, in a line that a person can read.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace meshard::conformance {

/// `expect.stride[1]: ours 4, recorded 3`; empty if they are equal.
std::string first_difference(const nlohmann::json& ours, const nlohmann::json& recorded);

/// `value` on one line, with its middle left out if it is long.
std::string shortened(const nlohmann::json& value);

}  // namespace meshard::conformance
