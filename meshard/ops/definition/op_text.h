// The interface through which an op reads its call from StableHLO text, the reverse of emission.h.
#pragma once
#include <initializer_list>
#include <span>
#include <string_view>

#include "meshard/graph/op_def.h"
#include "meshard/stablehlo/module.h"

namespace meshard {

/// One op of a text. lowering/ creates it and passes it to OpReading::attributes.
struct OpText {
  const stablehlo::Module& module;
  const stablehlo::ModuleOp& op;
  std::span<const TensorType> operands, results;

  /// The value of the first of these attributes that exists: pretty and generic forms name it
  /// differently. Empty if none is.
  std::string_view attribute(std::initializer_list<std::string_view> names) const;
  Dimensions list(std::initializer_list<std::string_view> names) const;
  /// A list with `count` entries; all are `otherwise` if it is absent.
  Dimensions list_of(std::initializer_list<std::string_view> names, std::size_t count,
                     std::int64_t otherwise) const;
  std::int64_t number(std::initializer_list<std::string_view> names, std::int64_t otherwise) const;
  std::size_t rank() const { return static_cast<std::size_t>(operands[0].rank()); }
};

/// The list behind `name = [` in the text of an attribute; empty if it is not there.
Dimensions list_in(std::string_view text, std::string_view name);
/// The number behind `name`; 0 if it is not there.
std::int64_t number_in(std::string_view text, std::string_view name);
/// Distributes a padding `[[low, high], ...]` over `rank` dimensions; one number is for all.
void set_padding(const Dimensions& pairs, std::size_t rank, Dimensions& low, Dimensions& high);

}  // namespace meshard
