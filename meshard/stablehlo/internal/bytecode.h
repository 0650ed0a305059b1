// Parser of the MLIR bytecode container: strings, dialects, attributes, types and operations, as
// far as a module's boundary needs them. Source: https://mlir.llvm.org/docs/BytecodeFormat/
// (versions 2 to 6), the enumerations of BuiltinDialectBytecode.td, VhloBytecode.cpp of StableHLO
// and bytecode_attributes.cc of Shardy.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/error.h"
#include "meshard/base/function_ref.h"

namespace meshard::stablehlo {

/// Reads numbers from bytes with bounds checks. Does not own the bytes.
/// @error every read throws data loss at the end of the bytes
class ByteCursor {
 public:
  explicit ByteCursor(std::string_view bytes) : bytes_(bytes) {}

  bool at_end() const { return position_ == bytes_.size(); }
  std::size_t position() const { return position_; }
  std::string_view bytes() const { return bytes_; }
  std::uint8_t byte();
  /// Reads a variable-length integer; the first byte's trailing zero bits count the bytes that
  /// follow.
  std::uint64_t number();
  /// Reads the length of a list whose entries take at least one byte each.
  std::size_t count();
  /// Reads a variable-length integer with the sign in its lowest bit.
  std::int64_t signed_number();
  std::string_view take(std::size_t size);
  std::string_view zero_terminated();

 private:
  std::string_view bytes_;
  std::size_t position_ = 0;
};

/// An attribute or type: its dialect, and either its encoded bytes or its text.
struct BytecodeEntry {
  std::string_view dialect;
  bool is_text = false;
  std::string_view bytes;
};

/// An operation, read up to its regions.
struct BytecodeOp {
  std::string_view name;
  /// The number of its location.
  std::uint64_t location = 0;
  /// The number of a dictionary.
  std::optional<std::uint64_t> attributes;
  std::string_view properties;
  std::size_t results = 0;
  // Where the results' types are, one number each.
  ByteCursor result_types = ByteCursor(std::string_view());
  /// Where the operands' numbers are, which end before `regions`.
  ByteCursor operands = ByteCursor(std::string_view());
  std::size_t num_operands = 0;
  std::size_t regions = 0;
  bool isolated = false;
};

/// An argument of a block: the number of its type, and of its location if it has one.
struct BytecodeArgument {
  std::uint64_t type = 0;
  std::optional<std::uint64_t> location;
};

/// The parsed sections of a bytecode file. Refers to the file's bytes.
class Bytecode {
 public:
  /// @error throws data loss
  explicit Bytecode(std::string_view bytes);

  static bool is_bytecode(std::string_view bytes) { return bytes.substr(0, 4) == "ML\xEFR"; }

  std::uint64_t version() const { return version_; }
  /// The number of bytes.
  std::size_t size() const { return size_; }
  std::string_view string(std::uint64_t index) const { return at(strings_, index, "string"); }
  std::size_t num_strings() const { return strings_.size(); }
  /// The full name of an operation: `func.func`.
  const std::string& op_name(std::uint64_t index) const { return at(ops_, index, "operation"); }
  const std::vector<std::string>& op_names() const { return ops_; }
  const BytecodeEntry& attribute(std::uint64_t index) const {
    return at(attributes_, index, "attribute");
  }
  std::size_t num_attributes() const { return attributes_.size(); }
  const BytecodeEntry& type(std::uint64_t index) const { return at(types_, index, "type"); }
  std::string_view properties(std::uint64_t index) const {
    return at(properties_, index, "property list");
  }
  BytecodeOp read_op(ByteCursor& cursor) const;
  /// Reads the head of a block and returns the number of its operations. `arguments` receives its
  /// arguments.
  std::size_t read_block(ByteCursor& cursor, std::vector<BytecodeArgument>& arguments) const;
  /// The bytes of the top-level operations.
  std::string_view operations() const { return section(4); }

 private:
  template <class T>
  static const T& at(const std::vector<T>& list, std::uint64_t index, const char* what) {
    if (index >= list.size()) fail_index(what, index, list.size());
    return list[static_cast<std::size_t>(index)];
  }
  [[noreturn]] static void fail_index(const char* what, std::uint64_t index, std::size_t size);
  std::string_view section(std::size_t id) const { return sections_[id]; }
  void read_strings();
  void read_dialects();
  void read_entries();
  void read_properties();

  std::uint64_t version_ = 0;
  std::size_t size_ = 0;
  std::array<std::string_view, 16> sections_{};
  std::vector<std::string_view> strings_, dialects_;
  std::vector<std::string> ops_;
  std::vector<BytecodeEntry> attributes_, types_;
  std::vector<std::string_view> properties_;
};

/// Calls `visit` with each operation, in the order of the bytes: an operation before the operations
/// of its regions.
/// @error throws data loss
void for_each_op(const Bytecode& bytecode, FunctionRef<void(const BytecodeOp&)> visit);

/// Reads a section that is nested in others (an isolated region). @post `cursor` is after it
std::string_view read_nested_section(ByteCursor& cursor, std::uint8_t* id = nullptr);

/// Reports damaged bytecode. @error always: data loss
[[noreturn]] void fail_bytecode(std::string_view what);

}  // namespace meshard::stablehlo
