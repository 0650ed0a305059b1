// Tested in meshard/target/compile_for_test.cc.
#include "meshard/target/compile_program.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"

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
