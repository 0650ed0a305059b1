// The structure around the arguments or results of an exported function.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// A value: a structure of Python, as `jax.export` writes it. A leaf is one argument or result.
struct ExportTree {
  enum class Kind : std::uint8_t { kLeaf, kNone, kTuple, kList, kDict, kCustom };
  Kind kind = Kind::kLeaf;
  /// The keys of a dict, in the order of `children`.
  std::vector<std::string> keys = {};
  std::vector<ExportTree> children = {};
  /// For a class that the exporter registered, its registered name and its other data.
  std::string custom_name = {}, custom_data = {};

  /// A tuple of `count` leaves.
  static ExportTree leaves(std::size_t count);
  /// The paths of the leaves, in order: `[0]['w']`; of a leaf alone, an empty path.
  std::vector<std::string> leaf_paths() const;
  /// For each leaf, the position in `paths` of the value that belongs there. Keys and the names of
  /// fields stand for each other: `[0].w` and `[0]["w"]` are the leaf `[0]['w']`. The children of a
  /// class that the exporter registered are matched by their order.
  /// @param paths of the values of a structure, as structure::for_each() gives them, in its order
  /// @error invalid argument: the structures differ; lists the paths that only one of them has
  Result<std::vector<std::size_t>> order_of(std::span<const std::string> paths) const;
};

}  // namespace meshard::stablehlo
