// One compile, as the program meshard-compile gets it and answers it.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/pjrt/compile_options.h"
#include "meshard/pjrt/named_value.h"
#include "meshard/target/compiled.h"

namespace meshard {

/// A value: everything that a compile depends on.
struct CompileJob {
  std::string module;
  /// The plugin file.
  std::string plugin;
  /// True: the devices are those of a client (the CPU plugin). False: of a described topology.
  bool on_client = false;
  /// The plugin is that of TPUs.
  bool on_tpu = false;
  /// What the topology or the client is made with.
  std::string topology_name;
  std::vector<pjrt::NamedValue> plugin_options;
  int num_partitions = 1;
  /// One for each partition.
  std::vector<int> device_ids;
  bool use_shardy = true;
  std::map<std::string, pjrt::CompileOptions::Override> overrides;
  /// Where the compiler writes its own account; empty: nowhere.
  std::string dump_folder;

  std::string serialize() const;
  /// @error data loss
  static Result<CompileJob> deserialize(std::string_view bytes);
  friend bool operator==(const CompileJob&, const CompileJob&) = default;
};

/// Compiles in this process. A module that the compiler cannot bear ends the process; see
/// compile_for.h.
/// @param step told what is done next: `compiling`
/// @error what the plugin says
Result<Compiled> run_compile_job(const CompileJob& job,
                                 const std::function<void(std::string_view step)>& step);

/// A result as bytes, and back. Errors keep code and message.
std::string serialize_answer(const Result<Compiled>& answer);
/// @error what the answer says; data loss if it is damaged
Result<Compiled> deserialize_answer(std::string_view bytes);

}  // namespace meshard
