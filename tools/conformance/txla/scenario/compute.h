// The functions that a scenario calls by torch's names, on meshard's public API.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard::conformance {

/// The result of the function `name`; none if it is not known.
/// @param args tensors and numbers, as the function takes them
/// @param keywords its other arguments, by torch's names
std::optional<Tensor> compute(const std::string& name, const std::vector<In>& args,
                              const nlohmann::json& keywords);

/// `add_`, `sub_`, ...: changes `target`. False if it is not known.
bool compute_in_place(const std::string& name, Tensor& target, In arg);

}  // namespace meshard::conformance
