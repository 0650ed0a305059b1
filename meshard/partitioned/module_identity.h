// Whether several processes are about to run the same program.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "meshard/base/fingerprint.h"
#include "meshard/base/result.h"

namespace meshard {

/// The fingerprint of a HLO module: of what it computes and communicates. Names, ids, source lines
/// and other metadata do not matter.
/// @error data loss if the bytes are damaged
Result<Fingerprint> module_fingerprint(std::string_view hlo);

/// The first op in which two modules differ, in each of them: `all-reduce n17 f32[8]
/// (train.cc:42)`.
struct ModuleDifference {
  std::string first;
  std::string second;
  /// What differs, if both are the same op with the same result.
  std::string detail;
  /// `all-reduce ... in the first, all-gather ... in the second`
  std::string to_string() const;
};

/// Compares the modules from the entry on, entering the computations that an op calls before the op
/// itself. Nothing if their fingerprints are equal.
/// @error data loss if the bytes are damaged
Result<std::optional<ModuleDifference>> first_difference(std::string_view first,
                                                         std::string_view second);

}  // namespace meshard
