// Which shardings of a compiled module the compiler chose, and which the program determines.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/explain/report_of.h"
#include "meshard/plan/explicit_shardings.h"
#include "meshard/plan/module_template.h"

namespace meshard::internal {

/// Value type: a choice, and the value that it is for.
struct ChosenValue {
  Sharding sharding;
  ChosenSharding shown = {};
  /// The number of the argument or result, or of the module's variable.
  std::size_t number = 0;
};

/// Value type: the choices in the order of the program, and the number of values without one.
struct ChosenValues {
  std::vector<ChosenValue> all;
  std::int64_t determined = 0;
  std::vector<std::string> notes = {};
};

/// Finds the choices of the compiler.
/// @param module the text that was compiled
/// @param compiled, numbered the module, and its text with numbered ops (stablehlo/
/// value_shardings.h)
/// @param report the report of `compiled`
/// @error data loss: what the compiler wrote cannot be parsed. unimplemented: it does not write the
/// module after propagation
Result<ChosenValues> find_chosen_values(const ModuleTemplate& module,
                                        const CompiledModule& compiled,
                                        const CompiledModule& numbered,
                                        const ProgramReport& report);

}  // namespace meshard::internal
