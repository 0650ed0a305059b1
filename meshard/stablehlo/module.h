// A view of a program's StableHLO text: its ops, and where each part of them is in the text.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

// Every string_view below is a part of the module's text: Module::range() gives its bytes.

/// A value: a range of bytes of a module's text.
struct TextRange {
  std::size_t begin = 0, end = 0;
  friend bool operator==(const TextRange&, const TextRange&) = default;
};

/// A value: an attribute of an op, from its properties, its dictionary, or its pretty form
/// (`dims = [1, 0]`, or only `LT` or `dense<0>`, which have no name).
struct ModuleAttribute {
  std::string name;
  /// Empty for an attribute without a value. May be an alias: Module::resolve().
  std::string_view value;
};
using ModuleAttributes = std::vector<ModuleAttribute>;

/// The value of the attribute with this name; empty if there is none.
std::string_view find_attribute(const ModuleAttributes& attributes, std::string_view name);

/// A value: an SSA value of a module: a result of an op, or an argument of a region.
struct ModuleVariable {
  /// `%arg0`, `%3`; results of one op share their name.
  std::string_view name;
  /// `tensor<16x32xf32>`; empty if the text does not give it.
  std::string_view type;
};

struct ModuleOp;

/// A value: a region with a single block, as all of StableHLO's are.
struct ModuleRegion {
  /// Includes the braces.
  std::string_view text;
  /// Numbers of variables.
  std::vector<int> arguments;
  /// The locations of the arguments, if they are written in a block label (`^bb0(%arg0: T
  /// loc("x")):`).
  std::vector<std::string_view> argument_locations;
  std::vector<ModuleOp> ops;
};

/// A value: one op, in pretty or generic form.
struct ModuleOp {
  /// With its dialect and without quotes: `stablehlo.add`, `func.return` (also where the text has
  /// `return`).
  std::string mnemonic;
  /// Everything from the names of the results to the location.
  std::string_view text;
  /// `main` of `@main`: of functions, calls and meshes; otherwise empty.
  std::string symbol;
  /// Numbers of variables. An operand that is not defined is -1. The operands of a reduction are in
  /// the generic order: inputs, then initial values.
  std::vector<int> operands, results;
  ModuleAttributes attributes;
  std::vector<ModuleRegion> regions;
  /// `loc(...)`; empty if there is none.
  std::string_view location;

  /// The text without the location.
  std::string_view text_before_location() const;
};

/// A value: an argument or result in the signature of a function.
struct ModuleBoundary {
  std::string_view type;
  /// The attributes with their braces; empty if there are none.
  std::string_view dictionary;
  ModuleAttributes attributes;
  std::string_view location;
};

/// A value: the signature of a function. Its op is `op`.
struct ModuleFunction {
  std::string name;
  const ModuleOp* op = nullptr;
  std::vector<ModuleBoundary> arguments, results;
  /// False for a single result that is written without parentheses: it cannot have attributes.
  bool results_take_attributes = true;
  /// True if the function is written as `"func.func"() <{...}>`.
  bool generic = false;
  /// True if it cannot be called from outside of the module.
  bool is_private = false;
};

/// A handle on parsed text, immutable. Types and attributes are not interpreted.
class Module {
 public:
  /// Parses text in pretty or generic form, with or without locations. Ops of any dialect are read;
  /// what distinguishes one op from the next are their names and the ends of lines.
  /// @error data loss with the line: brackets or strings that do not match, an op without a name,
  /// an invalid function signature
  static Result<Module> parse(std::string text);

  std::string_view text() const;
  /// The ops outside of all regions: usually one, `builtin.module`.
  const std::vector<ModuleOp>& ops() const;
  const std::vector<ModuleVariable>& variables() const;
  const ModuleVariable& variable(int number) const {
    return variables()[static_cast<std::size_t>(number)];
  }
  /// In the order of the text.
  const std::vector<ModuleFunction>& functions() const;
  /// The first function with this name; nullptr if there is none.
  const ModuleFunction* function(std::string_view name) const;

  /// The bytes of a part of the text. @pre part is one of the views that this module returns
  TextRange range(std::string_view part) const;
  /// What the alias `#name` stands for; `value` itself if it is not an alias.
  std::string_view resolve(std::string_view value) const;
  /// The name in a location: `x` of `loc("x")` or `loc("x"(#loc1))`. Empty for the place in a file.
  std::string location_name(std::string_view location) const;
  /// The first place in a file of a location: `model.py:12`, also behind aliases. Empty if it has
  /// none.
  std::string source_line(std::string_view location) const;

  struct State;

 private:
  explicit Module(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

/// Calls `visit` with each op, in the order of the text: an op before the ops of its regions.
template <std::invocable<const ModuleOp&> Visit>
void for_each_op(const std::vector<ModuleOp>& ops, const Visit& visit) {
  for (const ModuleOp& op : ops) {
    visit(op);
    for (const ModuleRegion& region : op.regions) for_each_op(region.ops, visit);
  }
}

/// The integers of a list attribute: `[1, 0]`, `array<i64: 1, 0>`, `dense<[[0, 1]]>`, `3 : i64`.
/// Empty if there are none.
std::vector<std::int64_t> integers_of(std::string_view attribute);

/// The contents of a string attribute; the text of any other attribute.
std::string plain_text(std::string_view attribute);

}  // namespace meshard::stablehlo
