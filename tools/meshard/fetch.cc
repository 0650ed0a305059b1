// meshard fetch: downloads compilers for hardware that is not here, after displaying their
// licenses.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "tools/meshard/subcommands.h"

namespace meshard::tool {
namespace {

namespace fs = std::filesystem;

struct FetchOptions {
  std::vector<std::string> platforms;
  bool yes = false;
};

// The path of the Python program: in the installation, otherwise in the source tree.
fs::path fetch_program() {
  std::error_code ignored;
  fs::path own = fs::read_symlink("/proc/self/exe", ignored);
  fs::path installed = own.parent_path() / ".." / "share" / "meshard" / "fetch_targets.py";
  if (fs::is_regular_file(installed, ignored)) return installed.lexically_normal();
  return fs::path(MESHARD_SOURCE_FOLDER) / "tools" / "fetch" / "fetch_targets.py";
}

int run_fetch(const FetchOptions& options) {
  std::string program = fetch_program().string();
  std::error_code ignored;
  if (!fs::is_regular_file(program, ignored)) {
    std::fprintf(stderr, "meshard fetch: %s, which is part of the installation, is missing\n",
                 program.c_str());
    return 1;
  }
  std::vector<std::string> words = {"python3", program};
  words.insert(words.end(), options.platforms.begin(), options.platforms.end());
  if (options.yes) words.push_back("--yes");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "meshard fetch: python3 is needed to fetch files, but was not found\n");
  return 1;
}

}  // namespace

void add_fetch(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<FetchOptions>();
  CLI::App* command = app.add_subcommand(
      "fetch", "Downloads the compilers for TPUs, GPUs or CPUs into this machine's cache");
  command
      ->add_option(
          "platforms", options->platforms,
          "tpu, cuda, cpu; lammps-jax-pjrt-cpu or xla-cpu-pjrt, other builds of the latter")
      ->required()
      ->check(CLI::IsMember({"tpu", "cuda", "cpu", "lammps-jax-pjrt-cpu", "xla-cpu-pjrt"}));
  command->add_flag("--yes", options->yes, "accept the licenses that are printed; do not ask");
  command->footer(
      "The files come from the Python package index (MESHARD_WHEEL_DIR names a folder instead), "
      "are\n"
      "checked against hashes and stay on this machine, in plugins/ of MESHARD_CACHE or\n"
      "~/.cache/meshard.");
  command->callback([options, &exit_code] { exit_code = run_fetch(*options); });
}

}  // namespace meshard::tool
