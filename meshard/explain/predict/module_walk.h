// Reads the ops of a module's main function for prediction.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/explain/predict/ruled_program.h"
#include "meshard/stablehlo/module.h"

namespace meshard {

/// Value type: where an op of a module comes from.
struct ModulePlace {
  OriginPlace origin = {};
  /// True if it is a sharding mark.
  bool is_mark = false;
};
/// What the name in an op's location stands for; none if it stands for nothing.
using FindPlace = std::function<std::optional<ModulePlace>(std::string_view name)>;

/// Value type: a module's main function, read for prediction.
struct WalkedModule {
  RuledProgram rules;
  /// Numbers of values; none for one that is not a tensor of known shape.
  std::vector<std::optional<std::size_t>> arguments, results;
  /// Values that are replicated, and those that the text gives a sharding, with that text.
  std::vector<std::size_t> replicated;
  std::vector<std::pair<std::size_t, std::string>> constraints;
  /// Values inside manual computations, with the index of the manual axes.
  std::vector<std::pair<std::size_t, std::size_t>> local;
  std::vector<std::vector<std::string>> manual_axes;
  /// Names of meshes that have other axes than the first one.
  std::vector<std::string> other_meshes;
  /// The number of ops with operands, as often as they are called, and of those that have a rule or
  /// are followed.
  std::size_t all_ops = 0, known_ops = 0;
};

/// Writes out main: called functions, loops, branches and manual computations are followed.
WalkedModule walk(const stablehlo::Module& module, const stablehlo::ModuleFunction& main,
                  const FindPlace& find_place = {});

}  // namespace meshard
