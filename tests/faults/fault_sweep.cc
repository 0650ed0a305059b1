// Makes each of a scenario's calls to the plugin fail in turn, and checks the state afterward.
//
// Attempts run in child processes that are forked before the runtime starts, because a fault may
// crash or hang a process or wedge its client; then the next process continues after it. A `warm`
// process has run the scenario before, and sweeps over the calls of another run. A `cold` process
// is fresh, and makes a single attempt, which includes loading the plugin.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "meshard/pjrt/plugin_search.h"
#include "tests/faults/attempt.h"

namespace faults {
namespace {

using meshard::cat;

constexpr int kDevices = 8;
// Attempts take less than a hundredth of this, unless they hang.
constexpr int kPatience = 120'000;  // milliseconds
constexpr const char* kMessage = "injected fault";
constexpr const char* kExecute = "PJRT_LoadedExecutable_Execute";

struct Arguments {
  std::string scenario, mode, kind;
  int first = 0, last = 0;
  bool all = false, verbose = false;
  bool here = false;  // run in this process, for a debugger
};

// What the first run of a scenario reports to the parent, in shared memory.
struct Reference {
  std::size_t count;
  float values[1 << 20];
};

struct Listed {
  std::string entry;
  bool gives_event;
};

// The calls of a run, and the number of its launches that use each device.
struct Calls {
  std::vector<Listed> all;
  std::vector<int> launches = std::vector<int>(kDevices);
  int wide_launches = 0;  // on several devices at once
};

struct Sweep {
  const Scenario& scenario;
  bool warm;
  const Control& control;
  std::string folder;
  Reference* reference;
};

Fault fault_of(FaultKind kind, int call) { return {kind, call, nullptr, -1, 8, kMessage, 3}; }

Run run_once(const Sweep& sweep) {
  Run run(sweep.control.launches, sweep.folder);
  sweep.scenario.run(run);
  return run;
}

// ---- in a child --------------------------------------------------------------------------------

void tell(int pipe, const std::string& line) {
  std::string text = line + "\n";
  for (std::size_t at = 0; at < text.size();) {
    ssize_t wrote = write(pipe, text.data() + at, text.size() - at);
    if (wrote <= 0) _exit(3);
    at += static_cast<std::size_t>(wrote);
  }
}

void list_calls(const Sweep& sweep, int pipe) {
  if (sweep.warm) {
    run_once(sweep);
    run_once(sweep);
    sweep.control.forget_calls();
  }
  Run run = run_once(sweep);
  int calls = sweep.control.calls();
  sweep.reference->count = run.values().size();
  std::copy(run.values().begin(), run.values().end(), sweep.reference->values);
  for (int k = 1; k <= calls; ++k)
    tell(pipe, cat("call ", sweep.control.call_gives_event(k), " ", sweep.control.call_name(k)));
  for (int device = 0; device < kDevices; ++device) {
    Fault beyond = fault_of(kFaultLate, INT_MAX);
    beyond.entry = kExecute;
    beyond.device = device;
    sweep.control.set(&beyond);
    run_once(sweep);
    tell(pipe, cat("launches ", sweep.control.matches()));
  }
  Fault beyond = fault_of(kFaultDeserted, INT_MAX);
  sweep.control.set(&beyond);
  run_once(sweep);
  tell(pipe, cat("launches ", sweep.control.matches()));
}

void make_attempts(const Sweep& sweep, const std::vector<Fault>& faults, std::size_t first,
                   int pipe) {
  const Reference& reference = *sweep.reference;
  Context context{
      sweep.control, sweep.folder, {reference.values, reference.values + reference.count}};
  if (sweep.warm)
    for (int i = 0; i < 2; ++i) run_once(sweep);
  for (std::size_t i = first; i < faults.size(); ++i) {
    tell(pipe, "begin");
    Report report = attempt(sweep.scenario, faults[i], context);
    tell(pipe, cat(static_cast<int>(report.outcome), " ", report.entry, " ", report.text));
    // The state after a failure would affect the next attempt.
    if (!sweep.warm || report.outcome == Outcome::kWedged || report.outcome == Outcome::kFailed)
      return;
  }
}

// ---- in the parent -----------------------------------------------------------------------------

struct Child {
  pid_t id = -1;
  int pipe = -1;
  std::string unread;
  bool stopped = false;  // killed by us because it was silent for too long

  template <class F>
  static Child start(F work) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    std::fflush(nullptr);
    Child child;
    child.id = fork();
    if (child.id < 0) throw std::runtime_error("no process");
    if (child.id == 0) {
      close(ends[0]);
      try {
        work(ends[1]);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        std::exit(2);
      }
      std::exit(0);
    }
    close(ends[1]);
    child.pipe = ends[0];
    return child;
  }

  // The next line. Empty at the end, or after a silence that means a hang.
  std::optional<std::string> line() {
    while (true) {
      if (std::size_t end = unread.find('\n'); end != unread.npos) {
        std::string text = unread.substr(0, end);
        unread.erase(0, end + 1);
        return text;
      }
      pollfd wait{pipe, POLLIN, 0};
      if (poll(&wait, 1, kPatience) == 0) {
        stopped = true;
        kill(id, SIGKILL);
        return std::nullopt;
      }
      char bytes[4096];
      ssize_t got = read(pipe, bytes, sizeof bytes);
      if (got <= 0) return std::nullopt;
      unread.append(bytes, static_cast<std::size_t>(got));
    }
  }

  // How the process ended. Empty: normally.
  std::string end() {
    close(pipe);
    int status = 0;
    if (waitpid(id, &status, 0) != id) return "";  // its status was already collected
    if (stopped) return "hangs";
    if (WIFSIGNALED(status)) return cat("signal ", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) return cat("exit status ", WEXITSTATUS(status));
    return "";
  }
};

Calls calls_of(const Sweep& sweep) {
  Calls calls;
  std::size_t device = 0;
  Child child = Child::start([&](int pipe) { list_calls(sweep, pipe); });
  while (auto text = child.line()) {
    if (text->starts_with("call "))
      calls.all.push_back({text->substr(7), (*text)[5] == '1'});
    else if (device < kDevices)
      calls.launches[device++] = std::atoi(text->c_str() + std::strlen("launches "));
    else
      calls.wide_launches = std::atoi(text->c_str() + std::strlen("launches "));
  }
  if (std::string how = child.end(); !how.empty())
    throw std::runtime_error(cat(sweep.scenario.name, " without a fault: ", how));
  return calls;
}

struct Kind {
  const char* name;
  FaultKind kind;
};
constexpr Kind kKinds[] = {{"error", kFaultError},
                           {"late", kFaultLate},
                           {"error_event", kFaultErrorEvent},
                           {"one_shard", kFaultErrorEvent},
                           {"deserted", kFaultDeserted}};

// All faults of a kind, with the entry that each is expected to hit.
std::vector<std::pair<Fault, std::string>> faults_of(const Kind& kind, const Calls& calls) {
  std::vector<std::pair<Fault, std::string>> faults;
  if (std::string_view(kind.name) == "one_shard") {
    for (int device = 0; device < kDevices; ++device)
      for (int k = 1; k <= calls.launches[static_cast<std::size_t>(device)]; ++k) {
        Fault fault = fault_of(kind.kind, k);
        fault.entry = kExecute;
        fault.device = device;
        faults.emplace_back(fault, cat(kExecute, " on device ", device));
      }
    return faults;
  }
  if (kind.kind == kFaultDeserted) {
    for (int k = 1; k <= calls.wide_launches; ++k) {
      Fault fault = fault_of(kind.kind, k);
      fault.device = -1;
      faults.emplace_back(fault, cat(kExecute, " on several devices"));
    }
    return faults;
  }
  int number = 0;
  for (const Listed& call : calls.all)
    if (kind.kind != kFaultErrorEvent || call.gives_event)
      faults.emplace_back(fault_of(kind.kind, ++number), call.entry);
  return faults;
}

// A sample of the faults: each entry once or twice, at a random call.
std::vector<std::pair<Fault, std::string>> sample(
    const std::vector<std::pair<Fault, std::string>>& all, std::size_t most,
    std::uint64_t& random) {
  auto next = [&] {
    return random = random * 6364136223846793005u + 1442695040888963407u, random >> 33;
  };
  std::map<std::string, std::vector<std::size_t>> by_entry;
  for (std::size_t i = 0; i < all.size(); ++i) by_entry[all[i].second].push_back(i);
  std::vector<std::size_t> one_each;
  for (auto& [entry, places] : by_entry) one_each.push_back(places[next() % places.size()]);
  std::set<std::size_t> chosen;
  while (chosen.size() < most && !one_each.empty()) {
    std::size_t at = next() % one_each.size();
    chosen.insert(one_each[at]);
    one_each.erase(one_each.begin() + static_cast<std::ptrdiff_t>(at));
  }
  for (int tries = 0; chosen.size() < std::min(most, all.size()) && tries < 100; ++tries)
    chosen.insert(next() % all.size());
  std::vector<std::pair<Fault, std::string>> result;
  for (std::size_t i : chosen) result.push_back(all[i]);
  return result;
}

struct Totals {
  int passed = 0, failed = 0;
};

void sweep_kind(const Sweep& sweep, const Kind& kind, const Calls& calls,
                const Arguments& arguments, std::uint64_t& random, Totals& totals) {
  auto all = faults_of(kind, calls);
  std::vector<std::pair<Fault, std::string>> chosen;
  if (arguments.first > 0) {
    for (const auto& each : all)
      if (each.first.call >= arguments.first && each.first.call <= arguments.last)
        chosen.push_back(each);
  } else {
    chosen = arguments.all ? all : sample(all, sweep.warm ? 25 : 6, random);
  }
  std::vector<Fault> faults;
  for (const auto& each : chosen) faults.push_back(each.first);
  if (arguments.here) return make_attempts(sweep, faults, 0, STDOUT_FILENO);
  const char* mode = sweep.warm ? "warm" : "cold";
  int counts[kOutcomes] = {};
  auto failure = [&](std::size_t i, const std::string& entry, const std::string& text) {
    ++counts[static_cast<int>(Outcome::kFailed)];
    std::printf("FAILED %s %s %s call %d (%s): %s\n", sweep.scenario.name, mode, kind.name,
                faults[i].call, entry.c_str(), text.c_str());
  };
  std::size_t next = 0;
  while (next < faults.size()) {
    Child child = Child::start([&](int pipe) { make_attempts(sweep, faults, next, pipe); });
    bool under_way = false, any = false;
    while (auto text = child.line()) {
      if (*text == "begin") {
        under_way = any = true;
        continue;
      }
      under_way = false;
      std::size_t space = text->find(' ', 2);
      std::string entry = text->substr(2, space - 2), rest = text->substr(space + 1);
      auto outcome = static_cast<Outcome>((*text)[0] - '0');
      if (outcome == Outcome::kFailed)
        failure(next, entry, rest);
      else
        ++counts[static_cast<int>(outcome)];
      if (arguments.verbose)
        std::printf("%s %s %s call %d: %s\n", sweep.scenario.name, mode, kind.name,
                    faults[next].call, text->c_str());
      ++next;
    }
    std::string how = child.end();
    if (under_way) {
      failure(next, chosen[next].second, cat("the process: ", how));
      ++next;
    } else if (!how.empty() || !any) {
      // The process finished its attempt but did not end normally, or it started no attempt.
      std::size_t last = any ? next - 1 : next;
      failure(last, chosen[last].second, cat("the process at its end: ", how));
      if (!any) ++next;
    }
  }
  int failed = counts[static_cast<int>(Outcome::kFailed)];
  std::printf(
      "%-10s %s %-11s %5zu calls, %4zu tried: %d absorbed, %d reported, %d with a client that is "
      "lost, %d not reached, %d failed\n",
      sweep.scenario.name, mode, kind.name, all.size(), faults.size(),
      counts[static_cast<int>(Outcome::kAbsorbed)], counts[static_cast<int>(Outcome::kReported)],
      counts[static_cast<int>(Outcome::kWedged)], counts[static_cast<int>(Outcome::kNotHit)],
      failed);
  totals.failed += failed;
  totals.passed += std::max(0, static_cast<int>(faults.size()) - failed);
}

// The seed of the sample. `random` selects a new one and prints it, so that the run can be
// repeated.
std::uint64_t seed_of_sample() {
  const char* text = std::getenv("MESHARD_TEST_SEED");
  if (text == nullptr) return 1;
  if (std::string_view(text) != "random") return std::strtoull(text, nullptr, 10);
  std::uint64_t seed = std::random_device{}();
  std::printf("MESHARD_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

Arguments parse(int count, char** words) {
  Arguments arguments;
  arguments.all = std::getenv("MESHARD_NIGHTLY") != nullptr;
  for (int i = 1; i < count; ++i) {
    std::string_view word = words[i];
    auto value = [&] { return i + 1 < count ? std::string(words[++i]) : std::string(); };
    if (word == "--scenario")
      arguments.scenario = value();
    else if (word == "--mode")
      arguments.mode = value();
    else if (word == "--kind")
      arguments.kind = value();
    else if (word == "--first")
      arguments.first = arguments.last = std::atoi(value().c_str());
    else if (word == "--last")
      arguments.last = std::atoi(value().c_str());
    else if (word == "--all")
      arguments.all = true;
    else if (word == "--verbose")
      arguments.verbose = true;
    else if (word == "--here")
      arguments.here = true;
    else
      throw std::runtime_error(cat("unknown argument ", word));
  }
  return arguments;
}

int run_sweep(const Arguments& arguments) {
  auto plugin = meshard::pjrt::find_plugins().first("cpu");
  if (!plugin.ok()) {
    std::printf("no plugin: %s\n0 passed, 0 failed, 1 skipped\n", plugin.error().what());
    return 0;
  }
  setenv("MESHARD_FAULTY_PLUGIN", plugin->c_str(), 1);
  Control control = Control::load(MESHARD_FAULTY);
  meshard::RuntimeOptions options;
  options.plugin = MESHARD_FAULTY;
  options.platform = "cpu";
  options.cpu_devices = kDevices;
  meshard::configure_runtime(options).value();
  std::string pattern = (std::filesystem::temp_directory_path() / "meshard-faults-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  void* shared =
      mmap(nullptr, sizeof(Reference), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no memory to share");
  std::uint64_t random = seed_of_sample();
  Totals totals;
  for (const Scenario& scenario : scenarios()) {
    if (!arguments.scenario.empty() && arguments.scenario != scenario.name) continue;
    for (bool warm : {false, true}) {
      if (!warm && !scenario.cold) continue;
      if (!arguments.mode.empty() && arguments.mode != (warm ? "warm" : "cold")) continue;
      Sweep sweep{scenario, warm, control, pattern, static_cast<Reference*>(shared)};
      Calls calls = calls_of(sweep);
      for (const Kind& kind : kKinds)
        if (arguments.kind.empty() || arguments.kind == kind.name)
          sweep_kind(sweep, kind, calls, arguments, random, totals);
    }
  }
  std::error_code ignored;
  std::filesystem::remove_all(pattern, ignored);
  std::printf("%d passed, %d failed\n", totals.passed, totals.failed);
  return totals.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace faults

int main(int count, char** words) {
  try {
    return faults::run_sweep(faults::parse(count, words));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
