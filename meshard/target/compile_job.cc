#include "meshard/target/compile_job.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/base/whole_file.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/host_call.h"
#include "meshard/pjrt/loaded_executable.h"
#include "meshard/pjrt/plugin.h"
#include "meshard/pjrt/topology.h"

namespace meshard {

// A target is packed as its name.
template <>
struct internal::PackedForm<Target> {
  static void describe(std::string& out) { out += "target"; }
  static void pack(PackedWriter& to, const Target& target) { to.text(target.name()); }
  static void unpack(PackedReader& from, Target& to) {
    if (Result<Target> read = Target::parse(from.text()); read.ok())
      to = *std::move(read);
    else
      from.fail();
  }
};

namespace {

namespace fs = std::filesystem;
using pjrt::CompileOptions;
using Step = std::function<void(std::string_view)>;

// The answer of meshard-compile: a compiled program, or an error.
struct CompileAnswer {
  int code = 0;  // of the error; 0: none
  std::string message;
  std::string compiled;  // as Compiled::serialize() writes it
  MESHARD_FIELDS(code, message, compiled)
};

// The sharding propagation pass: Shardy's and GSPMD's.
constexpr const char* kPropagationPass = "^(shardy-xla|sharding-propagation)$";
constexpr std::string_view kOptimizedEnd = "after_optimizations.hlo.pb";
constexpr std::string_view kSourceEnd = ".before_optimizations.hlo.pb";

// File names are `module_0000.NAME.after_optimizations.hlo.pb`, `module_0001.NAME.
// sm_9.0a_gpu_after_optimizations.hlo.pb` and
// `module_0000.NAME.0001.PIPELINE.after_PASS.before_NEXT.hlo.pb`.
bool is_propagated(std::string_view name) {
  return name.ends_with(".hlo.pb") &&
         (name.find(".after_shardy-xla.") != std::string_view::npos ||
          name.find(".after_sharding-propagation.") != std::string_view::npos);
}

struct DumpedFile {
  std::string name;
  std::uintmax_t size = 0;
};

std::vector<DumpedFile> dumped_files(const std::string& folder) {
  std::vector<DumpedFile> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored))
      files.push_back({at->path().filename().string(), at->file_size(ignored)});
  }
  std::ranges::sort(files, {}, &DumpedFile::name);
  return files;
}

// The prefix `module_0000.`: some compilers also compile helper modules, numbered separately.
std::string_view module_number(std::string_view name) { return name.substr(0, name.find('.') + 1); }

// Sets compiler options that dump protos into `folder`. These are the module after sharding
// propagation and the buffer assignment. Options that are already set keep their values.
void ask_for_dumps(const std::string& folder, CompileOptions& options) {
  options.overrides.try_emplace("xla_dump_to", folder);
  options.overrides.try_emplace("xla_dump_hlo_as_proto", true);
  options.overrides.try_emplace("xla_dump_hlo_pass_re", std::string(kPropagationPass));
}

std::string read_dump(const std::string& folder, const DumpedFile& file) {
  return read_whole_file((fs::path(folder) / file.name).string()).value_or(std::string());
}

// The first module is the program; some compilers compile others for it.
std::string read_source(const std::string& folder) {
  for (const DumpedFile& file : dumped_files(folder))
    if (file.name.ends_with(kSourceEnd)) return read_dump(folder, file);
  return {};
}

// Reads the dumps into `to`; missing dumps leave its fields empty.
void read_dumps(const std::string& folder, Compiled& to) {
  std::vector<DumpedFile> files = dumped_files(folder);
  const DumpedFile* optimized = nullptr;  // of the largest module
  for (const DumpedFile& file : files)
    if (file.name.ends_with(kOptimizedEnd) && (!optimized || file.size > optimized->size))
      optimized = &file;
  if (optimized == nullptr) return;
  const DumpedFile* propagated = nullptr;  // the last file of the same module
  for (const DumpedFile& file : files)
    if (is_propagated(file.name) && module_number(file.name) == module_number(optimized->name))
      propagated = &file;
  to.buffer_assignment = read_dump(folder, *optimized);
  if (propagated != nullptr) to.propagated_program = read_dump(folder, *propagated);
}

CompileOptions options_of(const CompileJob& job) {
  CompileOptions options = job.request.options;
  options.parameter_count = options.propagate_to_parameters.size();
  // JAX passes O2 unless its user sets jax_memory_fitting_level (jax/_src/compiler.py).
  if (job.request.as_jax) options.memory_fitting_level = 29;
  if (!job.dump_folder.empty()) ask_for_dumps(job.dump_folder, options);
  return options;
}

Result<void> read_executable(const pjrt::Executable& executable, Compiled& to) {
  MESHARD_ASSIGN_OR_RETURN(to.optimized_program, executable.optimized_program());
  if (auto memory = executable.memory_stats(); memory.ok()) to.memory = *memory;
  if (auto cost = executable.cost_analysis(); cost.ok()) to.cost_analysis = *cost;
  if (auto shardings = executable.parameter_shardings(); shardings.ok() && *shardings)
    to.parameter_shardings = **shardings;
  if (auto shardings = executable.output_shardings(); shardings.ok() && *shardings)
    to.output_shardings = **shardings;
  return {};
}

// In libtpu 0.0.51, passing any option by name also turns on this flag, which is off in a compile
// without options, and large modules are then partitioned differently. A report must describe the
// compile without options, so the flag is set to false explicitly.
constexpr const char* kShardingFlag = "xla_enable_hlo_sharding_v3";

// JAX passes all of DebugOptions, with the defaults of its own jaxlib. Those that differ from
// libtpu's own and matter for TPUs are the flag above and this limit, which jaxlib 0.10.2 does not
// know and passes as 0: libtpu itself moves small all-reduces out of loops that collect their
// results. (Found by comparing the `.debug_options` that XLA dumps of both compiles.)
constexpr const char* kLoopSumLimit = "xla_while_loop_all_reduce_dus_code_motion_max_size_bytes";

// Options that are set although nobody asked for them; older plugins do not have them.
std::map<std::string, CompileOptions::Override> implied_options(const CompileJob& job,
                                                                const CompileOptions& options) {
  std::map<std::string, CompileOptions::Override> implied;
  if (job.request.target.platform() != "tpu") return implied;
  if (job.request.as_jax) implied[kLoopSumLimit] = std::int64_t{0};
  if (job.request.as_jax || !options.overrides.empty()) implied[kShardingFlag] = false;
  return implied;
}

Result<pjrt::Executable> compile_as_plain(const pjrt::TopologyDescription& topology,
                                          const CompileJob& job) {
  const CompileOptions given = options_of(job);
  auto implied = implied_options(job, given);
  while (true) {
    CompileOptions options = given;
    options.overrides.insert(implied.begin(), implied.end());
    auto made = topology.compile(job.request.module, options);
    if (made.ok() || made.error().code() != ErrorCode::kInvalidArgument) return made;
    auto unknown = std::ranges::find_if(implied, [&](const auto& option) {
      return !given.overrides.contains(option.first) &&
             made.error().message().find(option.first) != std::string_view::npos;
    });
    if (unknown == implied.end()) return made;
    implied.erase(unknown);
  }
}

// Compiles with `compile` and collects the results.
template <class Compile>
Result<Compiled> timed_compile(const Step& step, Compile compile) {
  Compiled compiled;
  step("compiling");
  auto started = std::chrono::steady_clock::now();
  auto made = compile();
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - started;
  if (!made.ok()) return made.error();
  compiled.compile_seconds = taken.count();
  step("reading the compiled program");
  if constexpr (std::is_same_v<typename decltype(made)::value_type, pjrt::LoadedExecutable>) {
    MESHARD_RETURN_IF_ERROR(read_executable(made->executable(), compiled));
  } else {
    MESHARD_RETURN_IF_ERROR(read_executable(*made, compiled));
  }
  return compiled;
}

// Targets that programs of JAX call, and that no plugin has: those of its module that are missing
// are registered at once, instead of one for each attempt to compile.
std::vector<std::string> likely_missing_targets(std::string_view module) {
  std::vector<std::string> found;
  for (std::string_view prefix : {"lapack_", "xla_ffi_"})
    for (std::size_t at = module.find(prefix); at != std::string_view::npos;
         at = module.find(prefix, at + 1)) {
      constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
      std::size_t end = std::min(module.find_first_not_of(kLetters, at), module.size());
      std::string name(module.substr(at, end - at));
      bool known = name.ends_with("_ffi") || name.ends_with("_callback");
      if (known && std::ranges::find(found, name) == found.end()) found.push_back(std::move(name));
    }
  return found;
}

// Registers handlers that only compile. This process may compile other programs later.
class MissingHandlers {
 public:
  explicit MissingHandlers(const pjrt::Client& client) : client_(client) {}

  // False if the target is registered already, or cannot be.
  bool add(const std::string& target) {
    std::vector<std::string>& known = registered();
    if (std::ranges::find(known, target) != known.end()) return false;
    if (!pjrt::accept_missing_target(client_, target).ok()) return false;
    known.push_back(target);
    return true;
  }

  // Those that a compiled program calls.
  static std::vector<std::string> in(std::string_view program) {
    std::vector<std::string> called;
    for (const std::string& target : registered())
      if (program.find(target) != std::string_view::npos) called.push_back(target);
    return called;
  }

 private:
  static std::vector<std::string>& registered() {
    static std::vector<std::string> targets;
    return targets;
  }
  const pjrt::Client& client_;
};

Result<Compiled> compile_on_client(const pjrt::Plugin& plugin, const CompileJob& job,
                                   const Step& step) {
  MESHARD_ASSIGN_OR_RETURN(auto client,
                           pjrt::Client::create(plugin, job.request.target.plugin_options()));
  MissingHandlers missing(client);
  for (const std::string& target : likely_missing_targets(job.request.module)) missing.add(target);
  auto compile = [&] {
    while (true) {
      auto made = client.compile(job.request.module, options_of(job));
      if (made.ok()) return made;
      std::string target(unhandled_call(made.error(), kNoHandlerText));
      if (target.empty() || !missing.add(target)) return made;
    }
  };
  MESHARD_ASSIGN_OR_RETURN(Compiled compiled, timed_compile(step, compile));
  compiled.platform_version = client.platform_version();
  compiled.missing_handlers = MissingHandlers::in(compiled.optimized_program);
  return compiled;
}

Result<Compiled> compile_on_topology(const pjrt::Plugin& plugin, const CompileJob& job,
                                     const Step& step) {
  const Target& target = job.request.target;
  MESHARD_ASSIGN_OR_RETURN(
      auto topology,
      pjrt::TopologyDescription::create(plugin, target.plugin_name(), target.plugin_options()));
  auto compile = [&] { return compile_as_plain(topology, job); };
  MESHARD_ASSIGN_OR_RETURN(Compiled compiled, timed_compile(step, compile));
  if (auto version = topology.platform_version(); version.ok())
    compiled.platform_version = *version;
  return compiled;
}

}  // namespace

std::string CompileJob::serialize() const { return to_packed(*this); }

Result<CompileJob> CompileJob::deserialize(std::string_view bytes) {
  return from_packed<CompileJob>(bytes, "compile");
}

Result<Compiled> run_compile_job(const CompileJob& job, const Step& step) {
  step(cat("loading ", fs::path(job.plugin).filename().string()));
  MESHARD_ASSIGN_OR_RETURN(auto plugin, pjrt::Plugin::load(job.plugin));
  // The CPU plugin has no descriptions of devices that are not there.
  bool on_client = job.request.target.platform() == "cpu";
  auto compile = on_client ? compile_on_client : compile_on_topology;
  Result<Compiled> compiled = compile(plugin, job, step);
  const bool has_dumps = !job.dump_folder.empty();
  std::string source;
  if (has_dumps && job.request.keep_source) source = read_source(job.dump_folder);
  if (!compiled.ok()) {
    if (source.empty()) return compiled;
    compiled = Compiled{};
  } else if (has_dumps) {
    read_dumps(job.dump_folder, *compiled);
  }
  compiled->source_program = std::move(source);
  return compiled;
}

std::string serialize_answer(const Result<Compiled>& answer) {
  CompileAnswer sent;
  if (answer.ok())
    sent.compiled = answer->serialize();
  else
    sent = {static_cast<int>(answer.error().code()), answer.error().message(), {}};
  return to_packed(sent);
}

Result<Compiled> deserialize_answer(std::string_view bytes) {
  MESHARD_ASSIGN_OR_RETURN(CompileAnswer answer, from_packed<CompileAnswer>(bytes, "compile"));
  if (answer.code == 0) return Compiled::deserialize(answer.compiled);
  bool is_known = answer.code >= 1 && answer.code <= 16;
  return Error(is_known ? static_cast<ErrorCode>(answer.code) : ErrorCode::kUnknown,
               answer.message);
}

std::string Compiled::serialize() const { return to_packed(*this); }

Result<Compiled> Compiled::deserialize(std::string_view bytes) {
  return from_packed<Compiled>(bytes, "compiled");
}

}  // namespace meshard
