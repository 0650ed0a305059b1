// A program without calls: the ops of a module's main function and of the functions that it calls,
// each of which can be made a result of the program, or run by itself on one device.
#pragma once
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/stablehlo/module.h"

namespace meshard::stablehlo {

/// A value: an SSA value of a flat program.
struct FlatValue {
  /// `%v3`, or `%v3#1` of an op with several results; unique in the program.
  std::string name;
  std::string type;
};

/// How one device computes an op.
enum class FlatKind {
  kComputed,  ///< it computes its results from its operands
  kConstant,  ///< stablehlo.constant
  kRandom,    ///< random bits, which may depend on how they are partitioned
  kManual,    ///< a manual region, or an op with one inside
  kDevices,   ///< it communicates, or depends on the device: outside of manual regions, unusual
};

/// A value: one op of a flat program.
struct FlatOp {
  /// `stablehlo.add`.
  std::string mnemonic;
  /// In the module.
  const ModuleOp* op = nullptr;
  FlatKind kind = FlatKind::kComputed;
  /// Without its location; all names are unique in the program.
  std::string text;
  /// The same for one device, without shardings: an op that only changes a sharding returns its
  /// operand.
  std::string unsharded;
  std::vector<FlatValue> results;
  /// The values from outside of it that it uses, also in its regions, each once.
  std::vector<std::string> operands;
  /// Whether the results of the program need it. Unused for ops without results.
  bool is_used = false;
  /// The user's line, `model.py:12`; otherwise `line 3` of the module.
  std::string place;
};

/// A value: a program in which ops run by themselves, each on arguments of its own.
struct SeparateOps {
  std::string text;
  /// The values of the program that it takes, in order.
  std::vector<std::string> arguments;
  /// The values that it returns, in order.
  std::vector<std::string> results;
};

/// A handle on a module as a flat program. Calls are replaced by the ops of their functions, as
/// compilers do first; functions whose arguments or results have shardings stay called.
class FlatModule {
 public:
  /// @error data loss: the text cannot be parsed, or has no `main`; unimplemented: calls are nested
  /// too deeply, or the program is too long without them
  static Result<FlatModule> make(std::string text);

  const Module& module() const;
  const std::vector<FlatOp>& ops() const;
  const std::vector<FlatValue>& arguments() const;
  /// The names of the results of main.
  const std::vector<std::string>& results() const;
  /// @pre `name` is a value of the program
  std::string_view type_of(const std::string& name) const;

  /// The module with more results of main, which have no shardings. Its arguments are not donated.
  /// @pre these are values of the program
  std::string with_results(std::span<const std::string> more) const;
  /// The program for one device without shardings. The results of the used ops that are not
  /// kComputed or kConstant are arguments, in the order of given(), after the arguments of main.
  std::string unsharded() const;
  /// The results of the ops that unsharded() takes as arguments.
  std::vector<std::string> given() const;
  /// A program for one device that runs these ops, each on arguments that are not computed by the
  /// others; constants, which they may need to be constants, are a part of it.
  /// @pre the ops are kComputed or kConstant
  SeparateOps separate(std::span<const std::size_t> ops) const;

  struct State;

 private:
  explicit FlatModule(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace meshard::stablehlo
