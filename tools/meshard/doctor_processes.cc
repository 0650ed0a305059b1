// Tested in tools/meshard/check_doctor_processes.py.
#include "tools/meshard/doctor_processes.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"
#include "meshard/processes/gloo_communicator.h"
#include "meshard/processes/mpi_communicator.h"
#include "tools/meshard/launch_variables.h"
#include "tools/meshard/process_checks.h"
#include "tools/meshard/process_facts.h"

namespace meshard::tool {
namespace {

constexpr int kWorks = 0, kProblem = 1, kNotTogether = 2;

void row(std::string_view name, const std::string& value) {
  std::printf("  %-12s%s\n", std::string(name).c_str(), value.c_str());
}

void print_problem(const std::string& text) {
  std::string line = cat("meshard doctor: ", text, "\n");
  std::fflush(stdout);
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

/// Prints an error, if this process speaks for its host. Otherwise gives the one that does time to
/// print its own: the launcher ends all processes when one has ended. If that does not happen, the
/// error is only this process's.
void print_problem_of_host(bool speaks, const std::string& text) {
  constexpr std::chrono::seconds kTimeOfOthers{10};
  if (!speaks) std::this_thread::sleep_for(kTimeOfOthers);
  print_problem(text);
}

/// Ends the process if a step takes too long: MPI waits for ever for processes that are missing.
class Watchdog {
 public:
  Watchdog(double limit, bool speaks) : limit_(limit), speaks_(speaks) {
    thread_ = std::thread([this] { watch(); });
  }
  ~Watchdog() {
    begin("");
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The next step; empty: the end.
  void begin(std::string step) {
    std::lock_guard lock(mutex_);
    step_ = std::move(step);
    ++number_;
    changed_.notify_all();
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return number_ > 0; });
    while (!step_.empty()) {
      int now = number_;
      bool next = changed_.wait_for(lock, std::chrono::duration<double>(limit_),
                                    [&] { return number_ != now; });
      if (next) continue;
      print_problem_of_host(speaks_, cat(step_, " did not end within ", limit_, " s"));
      ::_exit(kNotTogether);
    }
  }

  const double limit_;
  const bool speaks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string step_;
  int number_ = 0;
  std::thread thread_;
};

// The path of a program on PATH; empty: none.
std::string on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "";
  for (std::size_t at = 0; at <= folders.size();) {
    std::size_t end = std::min(folders.find(':', at), folders.size());
    std::string file = cat(folders.substr(at, end - at), "/", program);
    std::error_code ignored;
    if (::access(file.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(file, ignored))
      return file;
    at = end + 1;
  }
  return "";
}

/// Which launcher was recognized, and why the others were not.
void print_launchers(const LaunchVariables& variables) {
  std::printf("\nLaunchers, by their variables\n");
  for (const LauncherFinding& each : variables.findings)
    std::printf("  %-29s%s%s\n", each.launcher.c_str(), each.recognized ? "recognized " : "",
                each.why.c_str());
}

int describe_one(const LaunchVariables& variables, double limit) {
  std::printf("Run of one process\n");
  if (!variables.launch.launcher.empty())
    row("launcher", cat(variables.launch.launcher, ", with one process"));
  ProcessFacts facts = facts_of_this_process(variables.launch, limit);
  std::string mpirun = on_path("mpirun"), srun = on_path("srun");
  row("mpirun", mpirun.empty() ? "not on PATH (Debian: openmpi-bin)" : mpirun);
  row("srun", srun.empty() ? "not on PATH" : srun);
  if (Result<MpiLibrary> mpi = installed_mpi_library(); mpi.ok()) {
    row("library", mpi->path);
    row("MPI", mpi->name);
  } else {
    row("library", mpi.error().message());
  }
  if (Result<GlooLibrary> gloo = installed_gloo_library(); gloo.ok()) {
    row("library", gloo->path);
    row("Gloo", gloo->name);
  } else {
    row("library", gloo.error().message());
  }
  row("plugin", facts.plugin_problem.empty()
                    ? cat(facts.plugin, ": ", facts.plugin_version)
                    : cat(facts.plugin, facts.plugin.empty() ? "" : ": ", facts.plugin_problem));
  row("cores", cat(facts.cores));
  std::printf(
      "\nStart all processes of a run to check them together:\n"
      "  meshard launch -n 4 -- meshard doctor --processes    on this machine\n"
      "  mpirun -n 4 meshard doctor --processes            the same, by MPI\n"
      "  mpirun --hostfile HOSTS meshard doctor --processes    on several\n"
      "  srun --mpi=pmix -n 4 meshard doctor --processes   with Slurm\n"
      "  torchrun --nproc-per-node 4 --no-python meshard doctor --processes    with PyTorch\n"
      "Without a launcher, in each process:\n"
      "  MESHARD_PROCESS_ADDRESS=HOST:PORT of process 0, MESHARD_PROCESS_COUNT=4,\n"
      "  MESHARD_PROCESS_RANK=0 to 3, MESHARD_PROCESS_SECRET=$(openssl rand -hex 32), the same in "
      "all\n");
  print_launchers(variables);
  return kWorks;
}

/// What process 0 knows of all processes.
struct Findings {
  std::vector<ProcessFacts> facts;
  std::vector<CheckTimes> times;
  std::vector<std::string> problems;
};

void print_run(const Processes& run, const LaunchVariables& launch, const ProcessFacts& first) {
  std::printf("Run of %d processes\n", run.size());
  row("launcher", launch.launch.launcher);
  row("", launch.launch.variables);
  if (run.communicator() != nullptr) {
    row("library", first.library);
    row("collectives", first.library_name);
  } else {
    row("collectives",
        cat("none between CPU devices; PJRT connects GPUs and TPUs itself",
            run.why_no_communicator().empty() ? "" : "; ", run.why_no_communicator()));
  }
  row("version", first.meshard);
  if (first.plugin_problem.empty()) {
    row("plugin", first.plugin);
    row("", cat(first.plugin_version, ", sha256 ", first.plugin_hash.substr(0, 16)));
  }
}

void print_members(const Processes& run, const Findings& all) {
  std::size_t width = 4;
  for (const ProcessInfo& member : run.members()) width = std::max(width, member.host.size());
  int columns = static_cast<int>(width);
  std::printf("\n  rank  %-*s  pid      devices  cores     clock\n", columns, "host");
  for (std::size_t rank = 0; rank < all.facts.size(); ++rank) {
    const ProcessInfo& member = run.members()[rank];
    const ProcessFacts& facts = all.facts[rank];
    std::string cores = cat(facts.own_cores, " of ", facts.cores);
    std::string clock =
        rank < all.times.size() && rank > 0 ? all.times[rank].clock.to_string() : std::string();
    std::printf("  %-5zu %-*s  %-8d %-8d %-9s %s\n", rank, columns, member.host.c_str(), member.pid,
                member.local_devices, cores.c_str(), clock.c_str());
  }
}

void print_times(const Processes& run, const std::vector<CheckTimes>& times) {
  const auto slowest = [&](double CheckTimes::*time) {
    double most = 0;
    for (const CheckTimes& each : times) most = std::max(most, each.*time);
    return most;
  };
  if (slowest(&CheckTimes::barrier) == 0) return;
  std::printf("\nMedian times of the slowest process\n");
  row("store", cat(time_text(slowest(&CheckTimes::store)), " for a put and a get"));
  row("barrier", time_text(slowest(&CheckTimes::barrier)));
  double n = run.size(), small = slowest(&CheckTimes::small_reduce),
         large = slowest(&CheckTimes::large_reduce);
  if (large == 0) return;
  row("all-reduce", cat(time_text(small), " for one number, ", time_text(large), " for ",
                        byte_text(kLargeBytes), "; sums are right"));
  // The ring of explain: 2 (n-1)/n of the bytes, in 2 (n-1) steps.
  double rate = 2 * (n - 1) / n * static_cast<double>(kLargeBytes) / large;
  char text[100];
  std::snprintf(text, sizeof text, "%.3gGB/s,%.3gus", rate / 1e9, small / (2 * (n - 1)) * 1e6);
  row("", cat("as a ring, ", text, ": `meshard explain --link process=", text, "`"));
  if (double program = slowest(&CheckTimes::program); program > 0)
    row("program", cat("works: a mean over all devices, compiled and run in ", time_text(program)));
}

void print_lines(std::string_view title, const std::vector<std::string>& lines) {
  if (!lines.empty()) std::printf("\n%s\n", std::string(title).c_str());
  for (std::string line : lines) {
    for (std::size_t at = 0; (at = line.find('\n', at)) != std::string::npos; at += 3)
      line.replace(at, 1, "\n  ");
    std::printf("  %s\n", line.c_str());
  }
}

// One value of each process, in process 0.
template <class T>
Result<std::vector<T>> collect(const Processes& run, std::string_view key) {
  std::vector<T> all;
  for (int rank = 0; rank < run.size(); ++rank) {
    MESHARD_ASSIGN_OR_RETURN(std::string text, run.store().get(cat(key, rank)));
    MESHARD_ASSIGN_OR_RETURN(T value, T::parse(text));
    all.push_back(std::move(value));
  }
  return all;
}

// Adds what the checks have found; the same problem of several processes once.
void add_problems(Findings& all) {
  std::map<std::string, std::vector<int>> ranks;
  for (std::size_t rank = 0; rank < all.times.size(); ++rank)
    if (!all.times[rank].problem.empty())
      ranks[all.times[rank].problem].push_back(static_cast<int>(rank));
  for (const auto& [problem, of] : ranks) all.problems.push_back(cat(names_of(of), ": ", problem));
}

void print(const Processes& run, const LaunchVariables& launch, const Findings& all) {
  print_run(run, launch, all.facts[0]);
  print_members(run, all);
  print_times(run, all.times);
  print_launchers(launch);
  print_lines("Advice", crowding_of(run.members(), all.facts));
  print_lines("Problems", all.problems);
  std::printf("\n%d processes, %s\n", run.size(),
              all.problems.empty() ? "everything works" : "not everything works");
  std::fflush(stdout);
}

// The same in all processes; only process 0 prints.
Result<int> examine_run(const Processes& run, const LaunchVariables& launch,
                        const ProcessFacts& own, Watchdog& watchdog) {
  watchdog.begin("the exchange of facts through the store");
  MESHARD_RETURN_IF_ERROR(run.store().put(cat("doctor/facts/", run.rank()), own.to_string()));
  Findings all;
  if (run.rank() == 0) {
    MESHARD_ASSIGN_OR_RETURN(all.facts, collect<ProcessFacts>(run, "doctor/facts/"));
    all.problems = problems_of(all.facts);
    MESHARD_RETURN_IF_ERROR(run.store().put("doctor/plan", all.problems.empty() ? "all" : "some"));
  }
  // A program needs the same plugin in all processes.
  MESHARD_ASSIGN_OR_RETURN(std::string plan, run.store().get("doctor/plan"));
  watchdog.begin("the check of store, barriers and collectives");
  CheckTimes times = check_processes(run, plan == "all");
  watchdog.begin("the exchange of results through the store");
  MESHARD_RETURN_IF_ERROR(run.store().put(cat("doctor/times/", run.rank()), times.to_string()));
  if (run.rank() == 0) {
    MESHARD_ASSIGN_OR_RETURN(all.times, collect<CheckTimes>(run, "doctor/times/"));
    add_problems(all);
    print(run, launch, all);
    MESHARD_RETURN_IF_ERROR(
        run.store().put("doctor/verdict", all.problems.empty() ? "works" : "problem"));
  }
  MESHARD_ASSIGN_OR_RETURN(std::string verdict, run.store().get("doctor/verdict"));
  watchdog.begin("the end of the run");
  MESHARD_RETURN_IF_ERROR(run.finalize());
  return verdict == "works" ? kWorks : kProblem;
}

ProcessesOptions options_of(const LaunchVariables& launch, double limit) {
  ProcessesOptions options;
  options.join_limit =
      std::chrono::milliseconds(std::max<std::int64_t>(1, std::llround(limit * 1000)));
  options.on_loss = [rank = launch.launch.rank](const ProcessLoss& loss) {
    bool first = rank <= (loss.rank == 0 ? 1 : 0);  // of those that are left
    if (first) print_problem(loss.to_string());
    // Process 0 tells the others. The launcher ends all processes when one has ended.
    if (rank <= 0 || !first) std::this_thread::sleep_for(std::chrono::seconds(1));
    ::_exit(kNotTogether);
  };
  return options;
}

}  // namespace

int doctor_processes(double limit) {
  LaunchVariables launch = launch_variables();
  if (!launch.problem.empty()) {
    print_launchers(launch);
    print_problem(launch.problem);
    return kNotTogether;
  }
  if (launch.launch.kind == LaunchKind::kSingle) return describe_one(launch, limit);
  bool by_mpi = launch.is_by_mpi();
  // Processes that were started one by one are on terminals or in logs of their own.
  bool speaks = !by_mpi || launch.speaks_for_host();
  ProcessFacts own = facts_of_this_process(launch.launch, limit);
  // A little later than the limit of initialize_processes(), which names the missing processes.
  Watchdog watchdog(limit + 1, speaks);
  watchdog.begin(by_mpi ? "the start of MPI in all processes (is one missing, or unreachable?)"
                        : "the start of all processes");
  Result<Processes> run = initialize_processes(options_of(launch, limit));
  if (!run.ok()) {
    watchdog.begin("");
    print_problem_of_host(speaks, run.error().message());
    return kNotTogether;
  }
  Result<int> result = examine_run(*run, launch, own, watchdog);
  if (result.ok()) return *result;
  watchdog.begin("");
  print_problem_of_host(run->rank() == 0, result.error().message());
  return kNotTogether;
}

}  // namespace meshard::tool
