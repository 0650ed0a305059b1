// Recorded numbers and ours, compared.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace meshard::conformance {

/// The numbers of a row-major list, true and false as 1 and 0.
std::vector<double> doubles_of(const nlohmann::json& list);

/// Where two lists differ by more than 1e-5 (of values above 1: of the value): `[3]: ours 2,
/// recorded 4`; empty if they do not.
std::string first_difference_of(const std::vector<double>& ours,
                                const std::vector<double>& recorded);

/// The whole of which `shards` are parts, row-major.
/// @param shards objects with `shape` (with padding), `indices` ("all", or a range for each
/// dimension) and `data` of `shape`
/// @param shape of the whole
/// @error std::runtime_error if two shards disagree or an element is in none.
std::vector<double> assembled(const nlohmann::json& shards, const nlohmann::json& shape);

}  // namespace meshard::conformance
