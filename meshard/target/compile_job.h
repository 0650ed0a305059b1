// One compile request as sent to the program meshard-compile, and its answer.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/target/compile_for.h"

namespace meshard {

/// Value type: everything that a compile depends on.
struct CompileJob {
  /// With a device id for each partition.
  CompileRequest request = {};
  /// The plugin file.
  std::string plugin = {};
  /// Folder for the compiler's dumps; empty: no dumps.
  std::string dump_folder = {};

  MESHARD_FIELDS(request, plugin, dump_folder)
  std::string serialize() const;
  /// @error data loss
  static Result<CompileJob> deserialize(std::string_view bytes);
  friend bool operator==(const CompileJob&, const CompileJob&) = default;
};

/// Compiles in this process. A module that crashes the compiler ends the process; compile_for.h
/// isolates such crashes.
/// @param step called with the name of each step before it begins: `compiling`
/// @error the plugin's error
Result<Compiled> run_compile_job(const CompileJob& job,
                                 const std::function<void(std::string_view step)>& step);

/// Serializes a result. Errors keep their code and message.
std::string serialize_answer(const Result<Compiled>& answer);
/// Reads what serialize_answer() wrote.
/// @error the error in the answer; data loss if the bytes are damaged
Result<Compiled> deserialize_answer(std::string_view bytes);

}  // namespace meshard
