// The time to build the project from nothing, and to compile a file that includes it.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "bench/report.h"
#include "bench/timing.h"

namespace meshard::bench {
namespace {

// Seconds of a shell command. Its output is discarded, unless it fails.
double seconds_of(const std::string& command, const std::string& log) {
  double begin = now();
  int status = std::system(("{ " + command + "; } > '" + log + "' 2>&1").c_str());
  double time = (now() - begin) / 1e6;
  if (status == 0) return time;
  std::fprintf(stderr, "meshard-bench: this command failed; its output is in %s\n  %s\n",
               log.c_str(), command.c_str());
  std::exit(1);
}

}  // namespace

void build_rows(Report& report) {
  std::string folder = (std::filesystem::temp_directory_path() / "meshard-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return;
  const std::string root = MESHARD_ROOT, log = folder + "/log", build = folder + "/build";
  const std::string cores = std::to_string(sysconf(_SC_NPROCESSORS_ONLN));
  setenv("CCACHE_DISABLE", "1", 1);

  const std::string file = folder + "/includes.cc";
  std::ofstream(file) << "#include \"meshard/meshard.h\"\n"
                         "int main() { return meshard::ones({2}).defined() ? 0 : 1; }\n";
  Least least;
  for (int i = 0; i < 3; ++i)
    least.take(seconds_of(std::string(MESHARD_COMPILER) + " -std=c++20 -I '" + root + "' -I '" +
                              MESHARD_BUILD + "/include' -c '" + file + "' -o '" + folder +
                              "/includes.o'",
                          log));
  report.add({.name = "build.include",
              .work = "compile a file that includes meshard.h",
              .unit = "s",
              .ours = least.value,
              .goal = "at most 2 s",
              .bound = 2});

  double configure = seconds_of("cmake -S '" + root + "' -B '" + build +
                                    "' -G Ninja -DCMAKE_BUILD_TYPE=Release -DMESHARD_BENCH=OFF "
                                    "-DMESHARD_EXAMPLES=OFF",
                                log);
  double library =
      seconds_of("cmake --build '" + build + "' -j " + cores + " --target meshard", log);
  char note[120];
  std::snprintf(note, sizeof note, "configuring %.1f s, compiling %.1f s on %s cores", configure,
                library, cores.c_str());
  report.add({.name = "build.library",
              .work = "configure and build the library from nothing, without a compiler cache",
              .unit = "s",
              .ours = configure + library,
              .goal = "at most 240 s on 2 cores",
              .bound = 240,
              .note = note});
  double rest = seconds_of("cmake --build '" + build + "' -j " + cores, log);
  report.add({.name = "build.all",
              .work = "the same with the tools and all tests",
              .unit = "s",
              .ours = configure + library + rest,
              .goal = "at most 240 s on 2 cores",
              .bound = 240});
  std::filesystem::remove_all(folder);
}

}  // namespace meshard::bench
