// One compile request as sent to the program meshard-compile, and its answer.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/base/result.h"
#include "meshard/pjrt/compile_options.h"
#include "meshard/pjrt/named_value.h"
#include "meshard/target/compiled.h"

namespace meshard {

/// Value type: everything that a compile depends on.
struct CompileJob {
  std::string module;
  /// The plugin file.
  std::string plugin;
  /// True: devices of a client (the CPU plugin). False: devices of a topology description.
  bool on_client = false;
  /// True if the plugin is for TPUs.
  bool on_tpu = false;
  /// Name and options for creating the topology or the client.
  std::string topology_name;
  std::vector<pjrt::NamedValue> plugin_options;
  /// As in CompileRequest, with a device id for each partition.
  pjrt::CompileOptions options;
  bool as_jax = false;
  /// Folder for the compiler's dumps; empty: no dumps.
  std::string dump_folder;

  MESHARD_FIELDS(module, plugin, on_client, on_tpu, topology_name, plugin_options, options, as_jax,
                 dump_folder)
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
