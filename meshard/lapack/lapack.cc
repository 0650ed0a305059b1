#include "meshard/lapack/lapack.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/file_cache.h"

namespace meshard {
namespace {

constexpr const char* kVariable = "MESHARD_LAPACK_LIBRARY";
constexpr std::array kNames{"libopenblas.so.0", "libflexiblas.so.3", "liblapack.so.3"};

constexpr std::string_view kSciPy = "scipy_";

std::vector<std::string>& folders() {
  static auto& all = *new std::vector<std::string>;
  return all;
}

// The files of SciPy's OpenBLAS that may be loaded.
std::vector<std::string> scipy_libraries() {
  std::vector<std::string> found;
  for (const std::string& folder : folders()) {
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
      if (entry.path().filename().string().starts_with("libscipy_openblas-") &&
          check_file_trust(entry.path()).ok())
        found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

void Lapack::search_in(std::string folder) { folders().push_back(std::move(folder)); }

Result<const Lapack*> Lapack::open() {
  // Never closed: OpenBLAS has threads.
  static const auto& opened = *new Result<Lapack>(open_first());
  if (!opened.ok()) return opened.error();
  return &opened.value();
}

Result<Lapack> Lapack::open_first() {
  if (const char* name = std::getenv(kVariable); name != nullptr && *name != '\0') {
    if (std::strchr(name, '/') != nullptr) MESHARD_RETURN_IF_ERROR(check_file_trust(name));
    Result<Lapack> found = open_file(name);
    if (found.ok()) return found;
    return Error(ErrorCode::kNotFound,
                 cat("[lapack] ", kVariable, "=", name, ": ", found.error().message()));
  }
  for (const std::string& name : scipy_libraries())
    if (Result<Lapack> found = open_file(name); found.ok()) return found;
  std::string tried;
  for (const char* name : kNames) {
    Result<Lapack> found = open_file(name);
    if (found.ok()) return found;
    append(tried, cat("\n  ", found.error().message()));
  }
  return Error(ErrorCode::kNotFound,
               cat("[lapack] no LAPACK library was found; install libopenblas0 or liblapack3, or "
                   "set ",
                   kVariable, " to its path:", tried));
}

Result<Lapack> Lapack::open_file(const std::string& name) {
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error(ErrorCode::kNotFound, ::dlerror());
  Lapack found(library, name);
  if (::dlsym(library, cat(kSciPy, "dgetrf_").c_str()) != nullptr) found.prefix_ = kSciPy;
  MESHARD_ASSIGN_OR_RETURN(void* routine, found.routine("dgetrf"));
  if (Dl_info info; ::dladdr(routine, &info) != 0 && info.dli_fname != nullptr)
    found.path_ = info.dli_fname;
  return found;
}

Result<void*> Lapack::routine(std::string_view name) const {
  const std::string symbol = cat(prefix_, name, "_");
  void* found = ::dlsym(library_, symbol.c_str());
  if (found == nullptr) return Error(ErrorCode::kNotFound, cat(path_, " has no routine ", symbol));
  return found;
}

}  // namespace meshard
