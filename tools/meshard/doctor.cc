// meshard doctor: which plugins are installed, whether they work, and how to fix problems.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "meshard/lapack/lapack.h"
#include "meshard/pjrt/client.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/quirks/quirks.h"
#include "meshard/runtime/disk_cache.h"
#include "tools/meshard/child_process.h"
#include "tools/meshard/doctor_processes.h"
#include "tools/meshard/subcommands.h"
#include "tools/meshard/targets.h"

namespace meshard::tool {
namespace {

struct DoctorOptions {
  double timeout = 60;
  bool all_places = false;
  bool quirks = false;
  std::vector<std::string> plugins;
  std::string target;
  bool processes = false;
  double limit = 60;
};

void line(std::string& out, std::string_view name, const std::string& value) {
  out += cat("  ", name, std::string(name.size() < 12 ? 12 - name.size() : 1, ' '), value, "\n");
}

void describe_devices(const pjrt::Client& client, std::string& out) {
  auto devices = client.addressable_devices();
  line(out, "devices",
       cat(devices.size(), " x ", devices[0]->description().kind().value_or("unknown kind"), " (",
           devices[0]->to_string(), devices.size() > 1 ? ", ..." : "", ")"));
  if (client.device_count() != devices.size())
    line(out, "", cat("of ", client.device_count(), " in all processes"));
  std::vector<std::string> kinds;
  if (auto memories = devices[0]->memories(); memories.ok())
    for (const pjrt::Memory& memory : memories.value()) kinds.push_back(memory.kind());
  line(out, "memories", join(kinds, ", "));
  if (auto stats = devices[0]->memory_stats(); stats.ok() && stats.value().bytes_limit)
    line(out, "", cat(*stats.value().bytes_limit >> 20, " MiB on each device"));
}

// The quirks that count for programs of the client; with `why`, a line for each.
void describe_quirks(const pjrt::Client& client, bool why, std::string& out) {
  const QuirkSet active = client.quirks(),
                 table = quirks_of_table(client.platform(), client.plugin().version().minor);
  std::string changed;
  for (std::size_t i = 0; i < quirk_table().size(); ++i) {
    auto quirk = static_cast<Quirk>(i);
    if (active.has(quirk) != table.has(quirk))
      changed += cat(active.has(quirk) ? "; MESHARD_QUIRKS adds " : "; MESHARD_QUIRKS turns off ",
                     row_of(quirk).name);
  }
  line(out, "quirks",
       cat(active.list().size(), " of ", quirk_table().size(), " count for this plugin",
           why ? "" : " (--quirks lists them)", changed));
  if (!why) return;
  for (Quirk quirk : active.list()) {
    const QuirkRow& row = row_of(quirk);
    out += cat("    ", row.name, ": ", row.fault, " ", row.instead, " Seen: ", row.seen, ".\n");
  }
}

std::string how_to_mend(const Error& error, const std::string& platform) {
  if (error.code() == ErrorCode::kPermissionDenied)
    return "make yourself or root the owner of the file and its folders, and let nobody else write "
           "them";
  if (error.message().find("MESHARD_QUIRKS") != std::string::npos)
    return "correct the variable, or unset it";
  if (error.code() == ErrorCode::kDataLoss) return "remove the file and fetch it again";
  if (error.code() == ErrorCode::kUnimplemented)
    return "install a plugin of a version that meshard can use";
  if (platform == "cuda")
    return "needs an NVIDIA GPU with its driver; without one, programs can be compiled for a "
           "described topology such as h100:8";
  if (platform == "tpu")
    return "needs a TPU; without one, programs can be compiled for a described topology such as "
           "v5e:2x2";
  return "the file may be damaged or built for another system: reinstall it";
}

std::chrono::seconds seconds_of(const DoctorOptions& options) {
  return std::chrono::seconds(std::max<std::int64_t>(1, std::llround(options.timeout)));
}

// The hash check of a file in the cache's `plugins/`; other files need no record.
std::string hash_state(const pjrt::FoundPlugin& found) {
  if (found.reason != "cache") return "";
  auto state = pjrt::check_fetched_file(found.path);
  if (!state.ok()) return "";  // loading reports the error
  switch (*state) {
    case pjrt::FetchedState::kNoRecord:
      return found.platform.empty()
                 ? "not recorded"
                 : cat("not recorded; `meshard fetch ", found.platform, "` checks and records it");
    case pjrt::FetchedState::kUnchanged: return "unchanged since it was fetched";
    case pjrt::FetchedState::kHashChecked: return "recalculated; unchanged since it was fetched";
  }
  return "";
}

void print_log(const std::string& log) {
  std::istringstream lines(log);
  for (std::string each; std::getline(lines, each);)
    std::printf("  log         %s\n", each.c_str());
}

// Runs in a child. Returns 0 if the plugin can be used.
int examine(const pjrt::FoundPlugin& found, bool why_quirks, std::string& out) {
  const std::string &path = found.path, &platform = found.platform;
  if (std::string hash = hash_state(found); !hash.empty()) line(out, "hash", hash);
  auto plugin = pjrt::Plugin::load(path);
  if (!plugin.ok()) {
    line(out, "problem", plugin.error().message());
    line(out, "fix", how_to_mend(plugin.error(), platform));
    return 1;
  }
  const pjrt::Plugin& loaded = plugin.value();
  line(out, "PJRT API",
       cat(loaded.version(), " (meshard was built with ", pjrt::built_api_version(), ")"));
  if (!loaded.newest_stablehlo().empty())
    line(out, "StableHLO", cat(loaded.oldest_stablehlo(), " to ", loaded.newest_stablehlo()));
  std::vector<std::string> extensions;
  for (const pjrt::Extension& extension : loaded.extensions())
    extensions.push_back(cat(extension.name(), " (", extension.type, ")"));
  line(out, "extensions", extensions.empty() ? "none" : join(extensions, ", "));
  if (auto missing = loaded.missing_entries(); !missing.empty())
    line(out, "lacks", join(missing, ", "));
  auto client = pjrt::Client::create(loaded);
  if (!client.ok()) {
    line(out, "problem", client.error().message());
    line(out, "fix", how_to_mend(client.error(), platform));
    return 1;
  }
  line(out, "platform", cat(client.value().platform(), ", ", client.value().platform_version()));
  describe_devices(client.value(), out);
  describe_quirks(client.value(), why_quirks, out);
  if (client.value().platform() == "cpu") {
    auto lapack = Lapack::open();
    line(out, "LAPACK", lapack.ok() ? lapack.value()->path() : lapack.error().message());
  }
  line(out, "verdict", "usable");
  return 0;
}

void print_places(const pjrt::PluginSearch& search, bool all) {
  std::printf("Searched\n");
  for (const pjrt::SearchedPlace& place : search.places)
    if (all || place.exists || search.found.empty())
      std::printf("  %s  %s (%s)\n", place.exists ? "found  " : "missing", place.path.c_str(),
                  place.reason.c_str());
}

void print_program_cache() {
  std::printf("\nCompiled programs\n");
  Result<DiskCache> cache = DiskCache::of_process();
  if (!cache.ok()) {
    std::printf("  problem     %s\n", cache.error().message().c_str());
    return;
  }
  if (!cache->is_on()) {
    std::printf("  not kept on disk (MESHARD_PROGRAM_CACHE_MB, owner of the cache folder)\n");
    return;
  }
  const FileCache& files = cache->files();
  std::printf("  folder      %s\n  entries     %zu, %.1f of %llu MiB\n", files.folder().c_str(),
              files.keys().size(), static_cast<double>(files.bytes()) / (1 << 20),
              static_cast<unsigned long long>(files.most_bytes() >> 20));
}

int run(const DoctorOptions& options) {
  pjrt::PluginSearch search;
  if (options.plugins.empty()) search = pjrt::find_plugins();
  for (const std::string& path : options.plugins)
    search.found.push_back({path, pjrt::guess_platform(path), "given"});
  int usable = 0;
  for (const pjrt::FoundPlugin& found : search.found) {
    std::printf("%s\n", found.path.c_str());
    ChildOutcome outcome = run_in_child(
        [&](std::string& out) { return examine(found, options.quirks, out); }, options.timeout);
    std::fputs(outcome.output.c_str(), stdout);
    if (!outcome.failure.empty())
      std::printf(
          "  problem     the plugin %s\n  fix         reinstall it, or install another version\n",
          outcome.failure.c_str());
    // Messages of plugins are shown only if they fail.
    bool works = outcome.failure.empty() && outcome.exit_code == 0;
    if (!works) print_log(outcome.log);
    usable += works;
    std::printf("\n");
  }
  if (options.plugins.empty()) {
    print_places(search, options.all_places);
    print_program_cache();
  }
  if (search.found.empty())
    std::printf(
        "\nNo plugin was found. `meshard fetch cpu` downloads the plugin for CPUs; to use another "
        "plugin file, set\nMESHARD_PLUGIN=/path/to/plugin.so\n");
  int targets = 0;
  if (options.plugins.empty()) targets = print_targets(seconds_of(options));
  std::printf("\n%zu found, %d usable\n", search.found.size(), usable);
  return usable > 0 || targets > 0 ? 0 : 1;
}

int try_target(const DoctorOptions& options) {
  return print_target(options.target, seconds_of(options)) ? 0 : 1;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command =
      app.add_subcommand("doctor", "Shows which plugins are installed, and whether they work");
  command->add_option("plugins", options->plugins, "plugin files; default: search for them");
  command->add_option("--timeout", options->timeout, "time limit for each plugin, in seconds")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_flag("--places", options->all_places,
                    "also list the searched places that do not exist");
  command->add_flag("--quirks", options->quirks,
                    "also list the faults of each plugin that meshard avoids, and how "
                    "(MESHARD_QUIRKS turns one off)");
  command
      ->add_option("--target", options->target,
                   "only check whether programs can be compiled for tpu, cuda or cpu (exit code 0)")
      ->check(CLI::IsMember({"tpu", "cuda", "cpu"}));
  CLI::Option* processes =
      command->add_flag("--processes", options->processes,
                        "check the processes of a run: mpirun -n 4 meshard doctor --processes");
  command
      ->add_option("--limit", options->limit,
                   "with --processes: seconds to wait for the others in each step")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->needs(processes);
  command->callback([options, &exit_code] {
    if (options->processes) {
      exit_code = doctor_processes(options->limit);
      return;
    }
    exit_code = options->target.empty() ? run(*options) : try_target(*options);
  });
}

}  // namespace meshard::tool
