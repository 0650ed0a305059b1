#include "meshard/lapack/lapack.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "meshard/base/cat.h"
#include "meshard/base/file_cache.h"

namespace meshard {
namespace {

constexpr const char* kVariable = "MESHARD_LAPACK_LIBRARY";
constexpr std::array kNames{"libopenblas.so.0", "libflexiblas.so.3", "liblapack.so.3"};

std::string symbol_of(std::string_view routine) { return cat(routine, "_"); }

}  // namespace

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
  MESHARD_ASSIGN_OR_RETURN(void* routine, found.routine("dgetrf"));
  if (Dl_info info; ::dladdr(routine, &info) != 0 && info.dli_fname != nullptr)
    found.path_ = info.dli_fname;
  return found;
}

Result<void*> Lapack::routine(std::string_view name) const {
  void* found = ::dlsym(library_, symbol_of(name).c_str());
  if (found == nullptr)
    return Error(ErrorCode::kNotFound, cat(path_, " has no routine ", symbol_of(name)));
  return found;
}

}  // namespace meshard
