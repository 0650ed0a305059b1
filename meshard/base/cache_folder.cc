#include "meshard/base/cache_folder.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace meshard {
namespace {

namespace fs = std::filesystem;

// From the password database; empty if the user has no account there.
std::string home_of_account() {
  std::vector<char> space(1 << 14);
  passwd entry{}, *found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, space.data(), space.size(), &found) != 0 ||
      found == nullptr || !fs::path(entry.pw_dir).is_absolute())
    return "";
  return entry.pw_dir;
}

}  // namespace

std::optional<std::string> process_variable(const char* name) {
  const char* value =
      ::secure_getenv(name);  // a setuid program must not load a plugin that the caller chose
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::string cache_folder(const ReadEnvironment& environment) {
  auto read = environment ? environment : ReadEnvironment(process_variable);
  if (auto cache = read("MESHARD_CACHE")) return *cache;
  if (auto cache = read("XDG_CACHE_HOME"); cache && fs::path(*cache).is_absolute())
    return (fs::path(*cache) / "meshard").string();
  std::string home = read("HOME").value_or("");
  if (!fs::path(home).is_absolute()) home = home_of_account();
  if (home.empty()) return "";
  return (fs::path(home) / ".cache" / "meshard").string();
}

}  // namespace meshard
