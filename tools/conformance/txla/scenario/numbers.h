// Compares recorded numbers with ours.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace meshard::conformance {

/// The numbers of a row-major list; true and false are 1 and 0.
std::vector<double> doubles_of(const nlohmann::json& list);

/// The first difference of two lists by more than 1e-5 (for values above 1: relative to the value):
/// `[3]: ours 2, recorded 4`; empty if there is none.
std::string first_difference_of(const std::vector<double>& ours,
                                const std::vector<double>& recorded);

/// The whole array of which `shards` are parts, row-major.
/// @param shards objects with `shape` (with padding), `indices` ("all", or a range for each
/// dimension) and `data` of `shape`
/// @param shape of the whole array
/// @error std::runtime_error if two shards disagree or an element is in no shard.
std::vector<double> assembled(const nlohmann::json& shards, const nlohmann::json& shape);

}  // namespace meshard::conformance
