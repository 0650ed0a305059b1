// Converts attributes and types from MLIR bytecode to text.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/function_ref.h"
#include "meshard/stablehlo/internal/bytecode.h"
#include "meshard/stablehlo/module_reader.h"

namespace meshard::stablehlo {

/// Whether a sharding is encoded with the reduction of its unreduced axes, as Shardy does since
/// July 2026; older compilers refuse it. @error throws data loss
bool names_reductions(const Bytecode& bytecode);

/// Reads attributes and types by number. Refers to the bytecode. The total work is limited, because
/// entries may refer to each other many times.
class BytecodeValues {
 public:
  using Dictionary = std::vector<std::pair<std::string, std::uint64_t>>;

  explicit BytecodeValues(const Bytecode& bytecode)
      : bytecode_(bytecode), work_left_(kWorkLimit + 8 * bytecode.size()) {}

  /// The value of a string, symbol or textual attribute; empty for any other attribute.
  std::string text(std::uint64_t attribute);
  /// The value of an integer or bool attribute; nullopt for any other.
  std::optional<std::int64_t> integer(std::uint64_t attribute);
  /// The attributes in an array or dictionary; empty for any other attribute.
  std::vector<std::uint64_t> array(std::uint64_t attribute);
  Dictionary dictionary(std::uint64_t attribute);
  /// The name in a location `loc("name"(...))`; empty if it has none.
  std::string location_name(std::uint64_t attribute);
  /// The first place in a file that a location has: `model.py:12`; empty if it has none.
  std::string location_place(std::uint64_t attribute, int depth = 0);
  /// The text of an attribute as StableHLO has it, also where the bytecode has the versioned form:
  /// `dense<0> : tensor<4xi32>`, `#stablehlo<precision DEFAULT>`.
  /// @error throws data loss: an attribute or a type that is not known, with its dialect and code
  std::string attribute_text(std::uint64_t attribute, int depth = 0);
  /// The attributes of a dictionary: `{a = 1 : i32, b}`; empty if there are none.
  std::string dictionary_text(std::uint64_t attribute, int depth = 0);
  std::string dictionary_text(const Dictionary& entries, int depth = 0);
  /// The numbers in an array or tensor of integers. @error throws data loss: it is none
  std::vector<std::int64_t> integers(std::uint64_t attribute);
  /// The text of a location, with what `nested` returns for each location in it:
  /// `loc(callsite(#loc1 at #loc2))`; `loc(unknown)` for one that is not known.
  std::string location_text(std::uint64_t attribute,
                            FunctionRef<std::string(std::uint64_t)> nested);
  /// The text of a type that must be known. @error throws data loss: it is not
  std::string known_type_text(std::uint64_t type);
  /// The text of a type: `tensor<2x3xf32>`; `?` for an unknown type.
  std::string type_text(std::uint64_t type, int depth = 0);
  /// The input and result types of the function type in an attribute.
  std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>> function_type(
      std::uint64_t attribute);
  /// The text of a sharding: `#sdy.sharding<@mesh, [{"x"}, {?}]>`.
  std::string sharding_text(std::uint64_t attribute);
  /// Reads a mesh.
  /// @param name the mesh's symbol
  ModuleMesh mesh(std::string name, std::uint64_t attribute);

 private:
  static constexpr std::uint64_t kWorkLimit = 1u << 28;

  // A cursor after the entry's code, which is stored in `code`. Returns nullopt for an entry of
  // another dialect or in text form.
  std::optional<ByteCursor> open(const BytecodeEntry& entry, std::string_view dialect,
                                 std::uint64_t& code);
  void work(std::uint64_t amount);
  std::vector<std::uint64_t> list(ByteCursor& cursor);
  std::string tensor_text(ByteCursor& cursor, int depth, std::string_view encoding = {});
  std::string encoding_text(std::uint64_t attribute);
  std::string builtin_type(std::uint64_t code, ByteCursor& cursor, int depth);
  std::string vhlo_type(std::uint64_t code, ByteCursor& cursor, int depth);
  std::string axis_text(std::uint64_t attribute);
  std::string axes_text(ByteCursor& cursor);
  std::string dimension_text(std::uint64_t attribute);
  ByteCursor open_sdy(std::uint64_t attribute, std::uint64_t code);
  // The cases of attribute_text(), by dialect: empty if the code is not known.
  std::string builtin_attribute(std::uint64_t code, ByteCursor& cursor, int depth);
  std::string vhlo_attribute(std::uint64_t code, ByteCursor& cursor, int depth);
  std::string stablehlo_attribute(std::uint64_t code, ByteCursor& cursor, int depth);
  std::string sdy_attribute(std::uint64_t attribute, std::uint64_t code, ByteCursor& cursor);
  std::string mappings_text(ByteCursor& cursor);
  std::string sharding_rule_text(ByteCursor& cursor);
  std::string list_text(ByteCursor& cursor, int depth);
  std::string types_text(ByteCursor& cursor, int depth);
  std::string function_type_text(ByteCursor& cursor, int depth);
  std::string unknown_type(std::string_view dialect, std::uint64_t code) const;

  const Bytecode& bytecode_;
  std::uint64_t work_left_;
  bool types_must_be_known_ = false;
};

}  // namespace meshard::stablehlo
