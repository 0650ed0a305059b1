// Prepares module text of other programs for compilers: the entry is `main`, and attributes of
// unknown dialects are removed.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::stablehlo {

/// A value: module text that a compiler of StableHLO accepts, as far as names are concerned.
struct CompilerText {
  std::string text;
  /// The changes, for the user: attributes that were removed, reductions that come earlier.
  std::vector<std::string> notes = {};
};

/// Makes the function that runs the program's `main`, and removes attributes that a compiler cannot
/// parse: those of dialects that it does not have, under a name with a dialect
/// (`ttcore.shard_status = #ttcore.shard_status<presharded>`), and maxima and minima that are not
/// reduced yet: the value is then reduced where it is marked. The text stays as it is where there
/// is nothing to do.
///
/// The entry is the function with the name `entry`; if that is empty, `main`; without a `main`, the
/// only public function.
/// @error data loss: the text is HLO, has no function, or cannot be parsed. invalid argument, with
/// the names: no function is called `entry`, or several are public and none is `main`.
/// unimplemented, with the line and the dialect: an op or a type of an unknown dialect
Result<CompilerText> text_for_compiler(std::string_view text, std::string_view entry = {});

/// The bytecode as compilers read it: with_older_calls(), or, if it has shardings that name a
/// reduction (JAX since 0.12), text_for_compiler() of its text. Text stays as it is.
/// @error data loss: the bytecode is damaged
Result<CompilerText> bytecode_for_compiler(std::string bytecode);

/// Whether a module is text: not bytecode or a portable artifact, and not empty.
bool is_module_text(std::string_view module);

/// An error if the bytes are the text of an HLO module (`HloModule jit_f, ...`), which a compiler
/// has made and does not read.
Result<void> check_not_hlo(std::string_view bytes);

}  // namespace meshard::stablehlo
