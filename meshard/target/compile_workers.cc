// Tested in meshard/target/compile_for_test.cc.
#include "meshard/target/compile_workers.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"
#include "meshard/base/temporary_folder.h"
#include "meshard/base/whole_file.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCompileProgram = "meshard-compile";

void add_around(const fs::path& file, std::vector<fs::path>& places) {
  fs::path folder = file.parent_path();
  places.push_back(folder / kCompileProgram);
  places.push_back(folder / ".." / "libexec" / "meshard" / kCompileProgram);
  places.push_back(folder / ".." / "bin" / kCompileProgram);
}

std::vector<fs::path> compile_program_places() {
  std::vector<fs::path> places;
  std::error_code ignored;
  add_around(fs::read_symlink("/proc/self/exe", ignored), places);
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_compile_program), &info) != 0 &&
      info.dli_fname != nullptr)
    add_around(fs::absolute(info.dli_fname, ignored), places);
#ifdef MESHARD_LIBEXEC_FOLDER
  places.push_back(fs::path(MESHARD_LIBEXEC_FOLDER) / kCompileProgram);
#endif
  std::string path = std::getenv("PATH") != nullptr ? std::getenv("PATH") : "";
  for (std::size_t at = 0; at < path.size();) {
    std::size_t end = std::min(path.find(':', at), path.size());
    if (end > at) places.push_back(fs::path(path.substr(at, end - at)) / kCompileProgram);
    at = end + 1;
  }
  return places;
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

namespace fs = std::filesystem;

// The folder outlives the process, which writes into it.
struct CompileWorkers::Worker {
  Worker(std::string the_program, std::string the_plugin, TemporaryFolder the_folder,
         ChildProgram the_child)
      : program(std::move(the_program)),
        plugin(std::move(the_plugin)),
        folder(std::move(the_folder)),
        child(std::move(the_child)) {}

  std::string program, plugin;
  TemporaryFolder folder;
  ChildProgram child;
  std::size_t jobs = 0;

  std::string file(std::string_view what) const { return cat(folder.path(), "/", what, "-", jobs); }

  // The answer to the job that was written last; none if the process ended or was stopped.
  std::optional<std::string> answer(const WorkerWatch& watch) {
    // A program that has ended already is noticed below.
    (void)child.write(cat(jobs, "\n"));
    ChildWatch lines{.time_limit = watch.time_limit, .on_line = {}, .on_tick = watch.on_tick};
    lines.on_line = [&](std::string_view line) {
      constexpr std::string_view kStep = "step: ";
      if (line.starts_with(kStep) && watch.on_step) watch.on_step(line.substr(kStep.size()));
      return line == "done";
    };
    if (child.watch(lines) == ChildPause::kTimeLimit) return std::nullopt;
    // It is written atomically, so that one of a process that has ended is complete, too.
    Result<std::string> bytes = read_whole_file(file("answer"));
    return bytes.ok() ? std::optional(*std::move(bytes)) : std::nullopt;
  }

  void remove_files() {
    std::error_code ignored;
    for (std::string_view what : {"request", "answer", "dump"}) fs::remove_all(file(what), ignored);
  }
};

struct CompileWorkers::Pool {
  std::size_t most_jobs;
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Worker>> idle;
  std::size_t started = 0;

  std::unique_ptr<Worker> take(const std::string& program, const std::string& plugin) {
    std::lock_guard lock(mutex);
    auto found = std::find_if(idle.begin(), idle.end(), [&](const auto& one) {
      return one->program == program && one->plugin == plugin;
    });
    if (found == idle.end()) return nullptr;
    std::unique_ptr<Worker> worker = std::move(*found);
    idle.erase(found);
    return worker;
  }
};

CompileWorkers::CompileWorkers(std::size_t most_jobs) : pool_(std::make_unique<Pool>()) {
  pool_->most_jobs = std::max<std::size_t>(most_jobs, 1);
}
CompileWorkers::~CompileWorkers() = default;

std::size_t CompileWorkers::started() const {
  std::lock_guard lock(pool_->mutex);
  return pool_->started;
}

Result<std::unique_ptr<CompileWorkers::Worker>> CompileWorkers::start(const std::string& plugin) {
  MESHARD_ASSIGN_OR_RETURN(std::string program, find_compile_program());
  if (std::unique_ptr<Worker> idle = pool_->take(program, plugin)) return idle;
  MESHARD_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::create());
  MESHARD_ASSIGN_OR_RETURN(ChildProgram child, ChildProgram::start({program, folder.path()}));
  std::lock_guard lock(pool_->mutex);
  ++pool_->started;
  return std::make_unique<Worker>(std::move(program), plugin, std::move(folder), std::move(child));
}

Result<WorkerAnswer> CompileWorkers::run(CompileJob job, const WorkerWatch& watch) {
  while (true) {
    // If this call throws, the process ends with its owner.
    MESHARD_ASSIGN_OR_RETURN(std::unique_ptr<Worker> worker, start(job.plugin));
    ++worker->jobs;
    job.dump_folder = worker->file("dump");
    MESHARD_RETURN_IF_ERROR(write_whole_file(worker->file("request"), job.serialize()));
    WorkerAnswer answer;
    answer.bytes = worker->answer(watch);
    if (answer.bytes) {
      answer.log = worker->child.take_log();
      worker->remove_files();
      std::lock_guard lock(pool_->mutex);
      if (worker->jobs < pool_->most_jobs) pool_->idle.push_back(std::move(worker));
      return answer;
    }
    answer.end = worker->child.end();
    answer.log = answer.end.log;
    if (worker->jobs == 1 || answer.end.timed_out) return answer;
  }
}

Result<std::string> find_compile_program() {
  MESHARD_RETURN_IF_ERROR(check_environment());
  if (const char* named = std::getenv("MESHARD_COMPILE"); named != nullptr && *named != '\0') {
    if (is_program(named)) return std::string(named);
    return Error(ErrorCode::kNotFound,
                 cat("[compile] MESHARD_COMPILE=", named, " is not an executable file"));
  }
  std::string looked;
  for (const fs::path& place : compile_program_places()) {
    if (is_program(place)) return place.lexically_normal().string();
    looked += cat("\n  ", place.lexically_normal().string());
  }
  return Error(
      ErrorCode::kNotFound,
      cat("[compile] cannot find the program meshard-compile, which is part of meshard; set "
          "MESHARD_COMPILE to its path. Searched",
          looked));
}

}  // namespace meshard
