#include "meshard/target/compile_for.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "meshard/base/cache_folder.h"
#include "meshard/base/cat.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/target/compile_job.h"
#include "meshard/target/compile_workers.h"
#include "meshard/target/compiled_cache.h"
#include "meshard/target/memory_shortage.h"

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
  return Error(ErrorCode::kNotFound,
               cat("[compile] no plugin was found for ", target.name(), " (platform ",
                   target.platform(), "); download it with `meshard fetch ", target.platform(),
                   "`, or set MESHARD_PLUGIN to its file"));
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
    std::sort(ids.begin(), ids.end());
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

}  // namespace meshard
