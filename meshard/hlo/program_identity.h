// What a program computes, apart from names, the order of its ops, and where they come from.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "meshard/base/fields.h"
#include "meshard/base/fingerprint.h"
#include "meshard/base/result.h"

namespace meshard {

/// A value: the first op in which two programs differ, in each of them: `all-reduce n17 f32[8]
/// (train.cc:42)`.
struct ModuleDifference {
  std::string first;
  std::string second;
  /// What differs, if both are the same op with the same result.
  std::string detail;

  MESHARD_FIELDS(first, second, detail)
  /// `all-reduce ... in the first, all-gather ... in the second`
  std::string to_string() const;
};

/// A handle on the canonical form of an HLO module, immutable. These do not matter:
/// - names of ops, functions, meshes and axes, metadata, and numbers of channels;
/// - the order of ops, except of those with effects such as infeed, and of the operands of ops that
///   give the same bits in any order (a + b);
/// - ops that nothing uses, and values that are computed twice;
/// - whether ops are in a function that is called, or in place of the call.
///
/// Everything else does: ops, types and layouts, attributes, constants, shardings by devices,
/// arguments and results with their order, and donation. Equivalent ops (x + x and 2 * x) are
/// different.
class ProgramIdentity {
 public:
  /// @param module bytes of an HloProto, before the compiler has optimized it
  /// @error data loss if they are damaged, or ops are not in an order in which operands precede
  /// their users; resource exhausted: more than 2^26 ops when functions are in place of their calls
  static Result<ProgramIdentity> from_bytes(std::string_view module);

  /// Equal for programs without a difference. Stable across processes.
  const Fingerprint& fingerprint() const;
  /// The number of different ops, including ops of loops and other computations.
  std::size_t ops() const;

  friend std::optional<ModuleDifference> first_difference(const ProgramIdentity& first,
                                                          const ProgramIdentity& second);

 private:
  struct State;
  friend class ProgramIdentityBuilder;
  explicit ProgramIdentity(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// The first difference of two programs: in the arguments and results, else in the ops that the
/// first of the results needs. None if their fingerprints are equal.
std::optional<ModuleDifference> first_difference(const ProgramIdentity& first,
                                                 const ProgramIdentity& second);

}  // namespace meshard
