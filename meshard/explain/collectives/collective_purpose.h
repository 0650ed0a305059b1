// What a collective is for.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/enum_names.h"
#include "meshard/base/fields.h"
#include "meshard/explain/collectives/op_scope.h"

namespace meshard {

/// What a collective moves or adds up.
enum class PurposeKind {
  kUnknown,
  kWeight,       ///< the value of arguments that the program also updates
  kArgument,     ///< the value of other arguments: a batch, a state, weights that stay as they are
  kGradient,     ///< the gradients of arguments: their sum over devices, or an exchange of them
  kUpdate,       ///< the new value of arguments, after the optimizer
  kResult,       ///< the sum of results of the program, such as the loss
  kActivations,  ///< values between layers, or partial sums of them
  kReshard,      ///< a value between layers whose sharding changes
  kUser,         ///< a collective that the program itself calls for a value that is none of these
};

template <>
struct EnumNames<PurposeKind> {
  using enum PurposeKind;
  static constexpr EnumName<PurposeKind> kNames[] = {
      {kUnknown, "unknown"},         {kWeight, "weight"},   {kArgument, "argument"},
      {kGradient, "gradient"},       {kUpdate, "update"},   {kResult, "result"},
      {kActivations, "activations"}, {kReshard, "reshard"}, {kUser, "user"}};
};

/// `weight`, `argument`, `gradient`, `update`, `result`, `activations`, `reshard`, `user`,
/// `unknown`
std::string_view to_string(PurposeKind kind);

/// How a purpose was found.
enum class PurposeCertainty {
  kUnknown,
  kExact,     ///< the data flow of the compiled module shows it
  kInferred,  ///< some of it is concluded from the names of neighboring ops
};

template <>
struct EnumNames<PurposeCertainty> {
  using enum PurposeCertainty;
  static constexpr EnumName<PurposeCertainty> kNames[] = {
      {kUnknown, "unknown"}, {kExact, "exact"}, {kInferred, "inferred"}};
};

/// `exact`, `inferred`, `unknown`
std::string_view to_string(PurposeCertainty certainty);

/// Value type: what a collective is for.
struct CollectivePurpose {
  PurposeKind kind = PurposeKind::kUnknown;
  PurposeCertainty certainty = PurposeCertainty::kUnknown;
  /// The arguments (for a result: the results) concerned, by name: `params['w1']`, or `argument 3`.
  std::vector<std::string> names = {};
  /// The layer: the op's scope `MLP/b0_up`, else the parameters' folder. A collective in a loop
  /// is in `loop` or `loop/attn`. Of a collective for several layers, their common part, `MLP`.
  /// Empty if unknown.
  std::string layer = {};
  ProgramPhase phase = ProgramPhase::kUnknown;
  /// For a reshard: the shardings before and after, `P("data", none)`; empty if unknown.
  std::string from = {}, to = {};

  MESHARD_FIELDS(kind, certainty, names, layer, phase, from, to)
  friend bool operator==(const CollectivePurpose&, const CollectivePurpose&) = default;
};

/// The arguments of a purpose in a line of text: ` of weight w1`, ` of weights (w1, w2, w3, ...)`,
/// ` of the gradients of (w1, w2)`. Empty for a purpose without names. `names` has those of all
/// collectives of a line.
std::string purpose_text(PurposeKind kind, const std::vector<std::string>& names);

/// The layers in a line of text: ` in b0_up`, ` in 6 layers (b0_up, b1_up, ...)`; empty if there
/// are none, or only `loop`.
std::string layers_text(const std::vector<std::string>& layers);

}  // namespace meshard
