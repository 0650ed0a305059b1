#include "meshard/stablehlo/platform_branch.h"

#include <bit>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/stablehlo/internal/bytecode.h"
#include "meshard/stablehlo/internal/bytecode_values.h"

namespace meshard::stablehlo {
namespace {

// Regions in regions. The limit keeps damaged bytes from exhausting the stack.
constexpr int kDeepest = 200;

// A number in the bytes, and where it is.
struct PlacedNumber {
  std::uint64_t value = 0;
  const char* at = nullptr;
  std::size_t size = 0;
};

// The values that one isolated op defines. Values have numbers in the order of their definitions;
// a region has a range of its own behind those of the regions around it.
struct ValueScope {
  std::vector<std::uint64_t> next;  // by region
  std::uint64_t end = 0;            // of the ranges
  std::optional<std::uint64_t> platform;
  std::map<std::uint64_t, std::uint64_t> instead;  // of a choice: the chosen value
};

class PlatformChooser {
 public:
  PlatformChooser(std::string_view bytes, std::uint64_t platform)
      : bytecode_(bytes), values_(bytecode_), bytes_(bytes), made_(bytes), platform_(platform) {}

  PlatformBranch run() {
    ByteCursor cursor(bytecode_.operations());
    ValueScope scope;
    read_block(cursor, scope, 0);
    return {std::move(made_), complete_};
  }

 private:
  // What is read of an op whose regions only choose a value.
  struct Choice {
    std::uint64_t result = 0;
    std::vector<std::uint64_t> returned;  // by region
  };

  PlacedNumber placed(ByteCursor& cursor, std::string_view section) const {
    std::size_t begin = cursor.position();
    std::uint64_t value = cursor.number();
    return {value, section.data() + begin, cursor.position() - begin};
  }

  // Returns the number of ops in the block, and defines its arguments.
  std::size_t block_head(ByteCursor& cursor, ValueScope& scope) {
    std::vector<BytecodeArgument> arguments;
    std::size_t ops = bytecode_.read_block(cursor, arguments);
    if (!scope.next.empty()) scope.next.back() += arguments.size();
    return ops;
  }

  void read_block(ByteCursor& cursor, ValueScope& scope, int depth) {
    std::size_t ops = block_head(cursor, scope);
    for (std::size_t i = 0; i < ops; ++i) read_op(cursor, scope, depth);
  }

  // An op, with the operands replaced that are choices.
  void read_op(ByteCursor& cursor, ValueScope& scope, int depth,
               std::vector<std::uint64_t>* returned = nullptr) {
    if (depth > kDeepest) fail_bytecode("regions are nested too deeply");
    const BytecodeOp op = bytecode_.read_op(cursor);
    const std::string_view name = op.name;
    std::optional<std::uint64_t> result;
    if (op.results > 0 && !scope.next.empty()) {
      result = scope.next.back();
      scope.next.back() += op.results;
    }
    std::vector<std::uint64_t> operands = read_operands(op, scope);
    bool chooses = scope.platform && operands.size() == 1 && operands[0] == *scope.platform &&
                   name.find("case") != std::string::npos && result;
    bool uses_platform = false;
    for (std::uint64_t operand : operands)
      uses_platform = uses_platform || (scope.platform && operand == *scope.platform);
    if (uses_platform && !chooses && name.find("call") == std::string::npos) complete_ = false;
    if (returned) *returned = operands;
    const bool is_function = name == "func.func" || name == "vhlo.func_v1";
    std::vector<std::uint64_t> chosen;
    // The regions of an isolated op are one section.
    std::optional<ByteCursor> inner;
    ValueScope own;
    if (op.isolated && op.regions > 0) {
      inner.emplace(read_nested_section(cursor));
      if (is_function && takes_platform(op)) own.platform = 0;
    }
    for (std::size_t i = 0; i < op.regions; ++i) {
      std::vector<std::uint64_t> last;
      read_region(inner ? *inner : cursor, inner ? own : scope, depth + 1, last);
      if (i == platform_ && last.size() == 1) chosen = last;
    }
    if (!chooses) return;
    if (chosen.empty())
      complete_ = false;
    else
      scope.instead[*result] = chosen[0];
  }

  std::vector<std::uint64_t> read_operands(const BytecodeOp& op, const ValueScope& scope) {
    std::vector<std::uint64_t> operands;
    ByteCursor cursor = op.operands;
    for (std::size_t left = op.num_operands; left > 0; --left) {
      PlacedNumber operand = placed(cursor, cursor.bytes());
      auto other = scope.instead.find(operand.value);
      if (other != scope.instead.end()) write(operand, other->second);
      operands.push_back(other != scope.instead.end() ? other->second : operand.value);
    }
    return operands;
  }

  // Reads a region. If it is a single block with a single op, which returns values that are defined
  // outside, `returned` has them.
  void read_region(ByteCursor& cursor, ValueScope& scope, int depth,
                   std::vector<std::uint64_t>& returned) {
    std::uint64_t blocks = cursor.number();
    if (blocks == 0) return;
    std::uint64_t values = cursor.number(), begin = scope.end;
    if (values > bytes_.size()) fail_bytecode("a region has too many values");
    scope.next.push_back(begin);
    scope.end += values;
    for (std::uint64_t b = 0; b < blocks; ++b) {
      std::size_t ops = block_head(cursor, scope);
      for (std::size_t i = 0; i < ops; ++i)
        read_op(cursor, scope, depth, blocks == 1 && ops == 1 ? &returned : nullptr);
    }
    for (std::uint64_t value : returned)
      if (value >= begin) returned.clear();
    scope.next.pop_back();
    scope.end = begin;
  }

  // Writes a smaller number in place of another one. A number may be written with more bytes than
  // it needs.
  void write(const PlacedNumber& old, std::uint64_t value) {
    if (old.size > 8 || value >> (7 * old.size) != 0) {
      complete_ = false;
      return;
    }
    std::uint64_t coded = ((value << 1) | 1) << (old.size - 1);
    for (std::size_t i = 0; i < old.size; ++i)
      made_[static_cast<std::size_t>(old.at - bytes_.data()) + i] =
          static_cast<char>(coded >> (8 * i));
  }

  // Whether the first argument of a function is the number of the platform.
  bool takes_platform(const BytecodeOp& op) {
    std::optional<std::uint64_t> of_arguments;
    if (!op.properties.empty()) {
      std::uint64_t first = ByteCursor(op.properties).number();  // arg_attrs
      if (op.name != "func.func")
        of_arguments = first;
      else if (first & 1)
        of_arguments = first >> 1;
    } else if (op.attributes) {
      for (const auto& [key, value] : values_.dictionary(*op.attributes))
        if (key == "arg_attrs") of_arguments = value;
    }
    if (!of_arguments) return false;
    std::vector<std::uint64_t> arguments = values_.array(*of_arguments);
    if (arguments.empty()) return false;
    for (const auto& [key, value] : values_.dictionary(arguments[0]))
      if (key == "jax.global_constant" && values_.text(value) == "_platform_index") return true;
    return false;
  }

  Bytecode bytecode_;
  BytecodeValues values_;
  std::string_view bytes_;
  std::string made_;
  std::uint64_t platform_;
  bool complete_ = true;
};

}  // namespace

Result<PlatformBranch> choose_platform(std::string_view bytecode, std::int64_t number) {
  return caught(
      [&] { return PlatformChooser(bytecode, static_cast<std::uint64_t>(number)).run(); });
}

}  // namespace meshard::stablehlo
