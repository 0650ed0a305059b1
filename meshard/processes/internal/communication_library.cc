// Tested in tests/processes/check_gloo.py.
#include "meshard/processes/internal/communication_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/file_cache.h"

namespace meshard::internal {
namespace {

namespace fs = std::filesystem;

void add_library_places(const fs::path& beside, const char* name, std::vector<fs::path>& places) {
  fs::path folder = beside.parent_path();
  places.push_back(folder / name);
  places.push_back(folder / ".." / "lib" / name);
}

/// How each table begins.
struct TableHead {
  std::uint32_t version;
  std::uint32_t struct_size;
};

}  // namespace

Result<std::string> find_communication_library(const CommunicationLibrary& library) {
  if (const char* named = ::secure_getenv(library.variable); named != nullptr && *named != '\0') {
    if (::access(named, R_OK) == 0) return std::string(named);
    return Error(ErrorCode::kNotFound,
                 cat("[processes] ", library.variable, "=", named, " cannot be read"));
  }
  std::vector<fs::path> places;
  std::error_code ignored;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_communication_library), &info) != 0 &&
      info.dli_fname != nullptr)
    add_library_places(fs::absolute(info.dli_fname, ignored), library.file, places);
  add_library_places(fs::read_symlink("/proc/self/exe", ignored), library.file, places);
#ifdef MESHARD_LIBRARY_FOLDER
  places.push_back(fs::path(MESHARD_LIBRARY_FOLDER) / library.file);
#endif
  std::string searched;
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place, ignored)) return place.lexically_normal().string();
    searched += cat("\n  ", place.lexically_normal().string());
  }
  return Error(
      ErrorCode::kNotFound,
      cat("[processes] cannot find ", library.file, ", which meshard builds where CMake ", "finds ",
          library.wants, "; set ", library.variable, " to its path. Searched", searched));
}

// Never closed: what is behind it has threads.
Result<const void*> open_communication_library(const CommunicationLibrary& library,
                                               const std::string& path, std::uint32_t version,
                                               std::size_t size) {
  MESHARD_RETURN_IF_ERROR(check_file_trust(path));
  void* opened = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return Error(ErrorCode::kUnavailable,
                 cat("[processes] cannot load ", path, ", which needs ", library.wants,
                     " or its runtime package: ", ::dlerror()));
  auto function = reinterpret_cast<const void* (*)()>(::dlsym(opened, library.function));
  const void* table = function != nullptr ? function() : nullptr;
  auto* head = static_cast<const TableHead*>(table);
  if (head == nullptr || head->version != version || head->struct_size < size)
    return Error(
        ErrorCode::kFailedPrecondition,
        cat("[processes] ", path, " belongs to another version of meshard: its interface is ",
            head != nullptr ? cat("version ", head->version) : std::string("unknown"),
            ", this library wants version ", version));
  return table;
}

}  // namespace meshard::internal
