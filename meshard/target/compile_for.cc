#include "meshard/target/compile_for.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"
#include "meshard/base/file_cache.h"
#include "meshard/base/fingerprint.h"
#include "meshard/pjrt/host_call.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/target/compile_job.h"
#include "meshard/target/compile_workers.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;
using Seconds = std::chrono::duration<double>;

Error invalid_request(std::string message) {
  return Error(ErrorCode::kInvalidArgument, cat("[compile] ", message));
}

// A plugin for the platform; else the MESHARD_PLUGIN file if its name does not imply a platform.
Result<std::string> plugin_for(const Target& target) {
  pjrt::PluginSearch search = pjrt::find_plugins();
  for (const pjrt::FoundPlugin& found : search.found)
    if (found.platform == target.platform()) return found.path;
  for (const pjrt::FoundPlugin& found : search.found)
    if (found.platform.empty() && found.reason == "MESHARD_PLUGIN") return found.path;
  std::string how = target.platform() == "rocm"
                        ? "install AMD's Python package of it (jax-rocm7-pjrt)"
                        : cat("download it with `meshard fetch ", target.platform(), "`");
  return Error(ErrorCode::kNotFound,
               cat("[compile] no plugin was found for ", target.name(), " (platform ",
                   target.platform(), "); ", how, ", or set MESHARD_PLUGIN to its file"));
}

// The ids in the request, else the target's lowest ids.
Result<std::vector<int>> device_ids_of(const CompileRequest& request) {
  const std::vector<int>& asked = request.options.device_assignment;
  auto count = static_cast<std::size_t>(request.options.num_partitions);
  std::unordered_set<std::int64_t> known;
  std::vector<int> ids;
  for (const DeviceAttributes& device : request.target.topology().devices()) {
    known.insert(device.id);
    if (asked.empty()) ids.push_back(static_cast<int>(device.id));
  }
  if (asked.empty()) {
    std::ranges::sort(ids);
    ids.resize(count);
    return ids;
  }
  if (asked.size() != count)
    return invalid_request(cat("got ", asked.size(), " device ids for ", count, " partitions"));
  std::unordered_set<int> seen;
  for (int id : asked) {
    if (!known.contains(id))
      return invalid_request(cat(request.target.name(), " has no device ", id));
    if (!seen.insert(id).second) return invalid_request(cat("device ", id, " is listed twice"));
  }
  return asked;
}

Result<CompileJob> job_of(const CompileRequest& request, const CompileForOptions& options) {
  if (request.module.empty()) return invalid_request("the module is empty");
  int partitions = request.options.num_partitions;
  if (partitions < 1 || partitions > request.target.size())
    return invalid_request(cat("the program has ", partitions, " partitions, but ",
                               request.target.name(), " has ", request.target.size(), " devices"));
  if (request.target.platform() != "cpu" &&
      request.module.find(pjrt::kHostCallTarget) != std::string::npos)
    return Error(ErrorCode::kUnimplemented,
                 cat("[compile] the program calls functions of this process (debug_print, "
                     "pure_callback or NaN checks), which only CPU devices can: remove them, or "
                     "compile for cpu:N instead of ",
                     request.target.name()));
  CompileJob job{.request = request, .plugin = options.plugin};
  MESHARD_ASSIGN_OR_RETURN(job.request.options.device_assignment, device_ids_of(request));
  if (job.plugin.empty()) {
    MESHARD_ASSIGN_OR_RETURN(job.plugin, plugin_for(request.target));
  }
  std::error_code ignored;
  job.plugin = fs::absolute(job.plugin, ignored).string();
  if (!fs::is_regular_file(job.plugin, ignored))
    return Error(ErrorCode::kNotFound, cat("[compile] cannot find the plugin file ", job.plugin));
  return job;
}

std::string last_lines(std::string_view log) {
  constexpr int kLines = 20;
  while (log.ends_with('\n')) log.remove_suffix(1);
  if (log.empty()) return "it printed nothing";
  std::size_t at = log.size();
  for (int line = 0; line < kLines && at != std::string_view::npos; ++line)
    at = at == 0 ? std::string_view::npos : log.rfind('\n', at - 1);
  if (at != std::string_view::npos) log.remove_prefix(at + 1);
  return cat("it last printed:\n", log);
}

// Reports the child's steps, and the elapsed time once per second.
class ProgressTeller {
 public:
  explicit ProgressTeller(const CompileForOptions& options) : options_(options) {}
  void begin(std::string_view step) {
    step_ = step;
    started_ = std::chrono::steady_clock::now();
    told_ = 0;
    if (options_.progress) options_.progress(step_);
  }
  void tick() {
    Seconds taken = std::chrono::steady_clock::now() - started_;
    if (!options_.progress || step_.empty() || static_cast<int>(taken.count()) <= told_) return;
    told_ = static_cast<int>(taken.count());
    options_.progress(cat(step_, ", ", told_, " s"));
  }
  const std::string& step() const { return step_; }

 private:
  const CompileForOptions& options_;
  std::string step_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  int told_ = 0;
};

// The compiler's error message; any out-of-memory message gets the code kResourceExhausted.
Error classified(const Error& error, const CompileRequest& request) {
  const Target& target = request.target;
  // libtpu 0.0.51 compiles for one device or for all of a v5e slice of more than 16; its check has
  // these words.
  if (error.message().find("limited ICI routing") != std::string_view::npos)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[compile] for ", target.name(), ": the program uses ",
                     request.options.num_partitions, " of ", target.size(),
                     " devices, and the links of this slice cannot go around devices that take no "
                     "part: the compiler accepts only 1 device or all. Name a smaller slice"));
  ErrorCode code = error.code();
  if (says_out_of_memory(error.message())) code = ErrorCode::kResourceExhausted;
  return Error(code, cat("[compile] for ", target.name(), ": ", error.message()));
}

Error abnormal_end(const ChildEnd& end, const ProgressTeller& progress,
                   const CompileForOptions& options) {
  std::string while_at = progress.step().empty() ? "" : cat(" while ", progress.step());
  if (end.timed_out)
    return Error(ErrorCode::kDeadlineExceeded,
                 cat("[compile] the compiler was stopped after ", options.time_limit.count(), " s",
                     while_at, "; ", last_lines(end.log)));
  std::string how = end.status_lost
                        ? "ended without an answer (SIGCHLD is ignored, so its status is unknown)"
                    : end.signal != 0 ? cat("crashed (signal ", end.signal, ")")
                                      : cat("ended with exit code ", end.exit_code);
  return Error(ErrorCode::kInternal,
               cat("[compile] the compiler ", how, while_at, "; ", last_lines(end.log)));
}

struct Cancelled {};

Result<Compiled> compile_in_child(const CompileJob& job, const CompileForOptions& options) try {
  ProgressTeller progress(options);
  WorkerWatch watch{.time_limit = options.time_limit, .on_step = {}, .on_tick = {}};
  watch.on_step = [&](std::string_view step) { progress.begin(step); };
  watch.on_tick = [&] {
    if (options.is_cancelled && options.is_cancelled()) throw Cancelled();
    progress.tick();
  };
  CompileWorkers own;
  CompileWorkers& workers = options.workers ? *options.workers : own;
  MESHARD_ASSIGN_OR_RETURN(WorkerAnswer answer, workers.run(job, watch));
  if (!answer.bytes) return abnormal_end(answer.end, progress, options);
  auto compiled = deserialize_answer(*answer.bytes);
  if (!compiled.ok()) return classified(compiled.error(), job.request);
  compiled->log = std::move(answer.log);
  return compiled;
} catch (const Cancelled&) {
  return Error(ErrorCode::kCancelled, "[compile] the compile was cancelled");
}

// Empty if there is no cache folder.
std::string cache_folder_of(const CompileForOptions& options) {
  if (!options.cache.empty()) return options.cache;
  std::string folder = cache_folder();
  return folder.empty() ? "" : (fs::path(folder) / "compiled").string();
}

namespace fs = std::filesystem;

// Format version: increases when the meaning of the bytes changes.
constexpr std::string_view kFormat = "meshard compiled 2";

std::string plugin_identity(const std::string& plugin) {
  std::error_code ignored;
  fs::path real = fs::canonical(plugin, ignored);
  auto time = fs::last_write_time(real, ignored).time_since_epoch().count();
  return cat(real.string(), "\n", fs::file_size(real, ignored), "\n", time);
}

// Parses `17.39G` and advances `text` past it.
std::optional<std::int64_t> read_amount(std::string_view& text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !(number >= 0)) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  double unit = 1;
  constexpr std::string_view kUnits = "KMGTP";
  if (!text.empty()) {
    if (std::size_t at = kUnits.find(text.front()); at != std::string_view::npos) {
      for (std::size_t i = 0; i <= at; ++i) unit *= 1024;
      text.remove_prefix(1);
    }
  }
  if (number * unit > 9e18) return std::nullopt;
  return static_cast<std::int64_t>(number * unit);
}

}  // namespace

Result<Compiled> compile_for(const CompileRequest& request, const CompileForOptions& options) {
  MESHARD_ASSIGN_OR_RETURN(CompileJob job, job_of(request, options));
  MESHARD_ASSIGN_OR_RETURN(std::uint64_t most_bytes, CompiledCache::most_bytes_set());
  CompiledCache cache(cache_folder_of(options), most_bytes);
  std::string key = CompiledCache::key_of(job);
  if (options.use_cache) {
    MESHARD_RETURN_IF_ERROR(cache.check_trust());
    if (auto found = cache.find(key)) return *std::move(found);
  }
  MESHARD_ASSIGN_OR_RETURN(Compiled compiled, compile_in_child(job, options));
  // A failed cache write only costs time.
  if (options.use_cache) (void)cache.keep(key, compiled);
  return compiled;
}

CompiledCache::CompiledCache(std::string folder, std::uint64_t most_bytes)
    : files_(std::move(folder), ".compiled", std::string(kFormat), most_bytes) {}

std::string CompiledCache::key_of(const CompileJob& job) {
  CompileJob lasting = job;
  lasting.dump_folder.clear();
  std::string bytes = lasting.serialize();
  return fingerprint(cat(kFormat, "\n", plugin_identity(job.plugin), "\n", bytes.size(), "\n",
                         bytes, "\n", pjrt::compiler_variables()))
      .to_string();
}

std::optional<Compiled> CompiledCache::find(const std::string& key) const {
  std::optional<std::string> bytes = files_.find(key);
  if (!bytes) return std::nullopt;
  auto compiled = Compiled::deserialize(*bytes);
  if (!compiled.ok()) return std::nullopt;
  compiled->from_cache = true;
  return *std::move(compiled);
}

Result<void> CompiledCache::keep(const std::string& key, const Compiled& compiled) const {
  return files_.keep(key, compiled.serialize());
}

Result<std::uint64_t> CompiledCache::most_bytes_set() {
  MESHARD_ASSIGN_OR_RETURN(
      std::int64_t megabytes,
      environment_integer("MESHARD_COMPILED_CACHE_MB", 1024, 0, std::int64_t{1} << 40));
  return static_cast<std::uint64_t>(megabytes) << 20;
}

bool says_out_of_memory(std::string_view message) {
  for (std::string_view words : {"Ran out of memory", "ran out of memory", "Out of memory",
                                 "out of memory", "RESOURCE_EXHAUSTED"})
    if (message.find(words) != std::string_view::npos) return true;
  return false;
}

std::optional<MemoryShortage> memory_shortage(std::string_view message) {
  struct Wording {
    std::string_view before, between, after;
  };
  constexpr Wording kWordings[] = {{"Used ", " of ", " hbm"},
                                   {"(", ") exceeds available HBM (", ")"},
                                   {"(", ") exceeds available hbm (", ")"}};
  for (const Wording& wording : kWordings)
    for (std::size_t at = message.find(wording.before); at != std::string_view::npos;
         at = message.find(wording.before, at + 1)) {
      std::string_view rest = message.substr(at + wording.before.size());
      auto needed = read_amount(rest);
      if (!needed || !rest.starts_with(wording.between)) continue;
      rest.remove_prefix(wording.between.size());
      auto available = read_amount(rest);
      if (available && rest.starts_with(wording.after))
        return MemoryShortage{*needed, *available,
                              message.substr(0, at).ends_with("HLO temporaries ")};
    }
  return std::nullopt;
}

std::string_view unhandled_call(const Error& error, const CallErrorText& text) {
  std::string_view message = error.message();
  std::size_t begin = message.find(text.before);
  if (begin == std::string_view::npos) return {};
  message.remove_prefix(begin + text.before.size());
  std::size_t end = message.find(text.after);
  return end == std::string_view::npos ? std::string_view() : message.substr(0, end);
}

}  // namespace meshard
