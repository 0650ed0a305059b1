// Attributes and types of MLIR bytecode as text: those that stand at a module's boundary.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/stablehlo/internal/bytecode.h"
#include "meshard/stablehlo/module_reader.h"

namespace meshard::stablehlo {

/// Reads attributes and types by number. Refers to the bytecode. The work is limited, because
/// entries may name each other many times.
class BytecodeValues {
 public:
  using Dictionary = std::vector<std::pair<std::string, std::uint64_t>>;

  explicit BytecodeValues(const Bytecode& bytecode) : bytecode_(bytecode), work_left_(kWorkLimit) {}

  /// A string, symbol or text; empty if the attribute is none.
  std::string text(std::uint64_t attribute);
  /// An integer or bool; none if the attribute is none.
  std::optional<std::int64_t> integer(std::uint64_t attribute);
  /// The attributes that an array or dictionary names; empty if the attribute is none.
  std::vector<std::uint64_t> array(std::uint64_t attribute);
  Dictionary dictionary(std::uint64_t attribute);
  /// The name of a location `loc("name"(...))`; empty if it has none.
  std::string location_name(std::uint64_t attribute);
  /// `tensor<2x3xf32>`; `?` for a type that is not known.
  std::string type_text(std::uint64_t type, int depth = 0);
  /// Inputs and results of a function's type, which the attribute holds.
  std::pair<std::vector<std::uint64_t>, std::vector<std::uint64_t>> function_type(
      std::uint64_t attribute);
  /// `#sdy.sharding<@mesh, [{"x"}, {?}]>`
  std::string sharding_text(std::uint64_t attribute);
  /// @param name the mesh's symbol
  ModuleMesh mesh(std::string name, std::uint64_t attribute);

 private:
  static constexpr std::uint64_t kWorkLimit = 1u << 28;

  // The entry's bytes behind its code, which is stored; none for another dialect or an entry of
  // text.
  std::optional<ByteCursor> open(const BytecodeEntry& entry, std::string_view dialect,
                                 std::uint64_t& code);
  void work(std::uint64_t amount);
  std::vector<std::uint64_t> list(ByteCursor& cursor);
  std::string tensor_text(ByteCursor& cursor, int depth);
  std::string builtin_type(std::uint64_t code, ByteCursor& cursor, int depth);
  std::string vhlo_type(std::uint64_t code, ByteCursor& cursor, int depth);
  std::string axis_text(std::uint64_t attribute);
  std::string axes_text(ByteCursor& cursor);
  std::string dimension_text(std::uint64_t attribute);
  ByteCursor open_sdy(std::uint64_t attribute, std::uint64_t code);

  const Bytecode& bytecode_;
  std::uint64_t work_left_;
};

}  // namespace meshard::stablehlo
