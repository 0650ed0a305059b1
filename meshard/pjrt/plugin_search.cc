#include "meshard/pjrt/plugin_search.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>

#include "meshard/base/cat.h"
#include "meshard/base/file_cache.h"
#include "meshard/base/sha256.h"
#include "meshard/base/whole_file.h"

namespace meshard::pjrt {
namespace {

namespace fs = std::filesystem;

// The CPU plugin that `meshard fetch cpu` downloads (third_party/plugins.lock), by its Python name.
constexpr std::string_view kDefaultPlugin = "fastatomstruct_xla_cpu";

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Sorted, so that the order is deterministic.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> result;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    result.push_back(at->path());
  std::ranges::sort(result);
  return result;
}

bool looks_like_plugin(const fs::path& path) {
  std::error_code error;
  std::string name = path.filename().string();
  if (path.extension() != ".so" || !fs::is_regular_file(path, error)) return false;
  return name == "libtpu.so" || name.find("pjrt") != std::string::npos ||
         name.find("_plugin") != std::string::npos;
}

class Search {
 public:
  explicit Search(const ReadEnvironment& environment)
      : read_(environment ? environment : ReadEnvironment(process_variable)) {}

  PluginSearch run() {
    for (const std::string& path : split(read_("MESHARD_PLUGIN").value_or(""), ':')) {
      bool exists = fs::exists(path, error_);
      note(path, "MESHARD_PLUGIN", exists);
      if (exists) add(path, "MESHARD_PLUGIN");
    }
    if (std::string cache = cache_folder(read_); !cache.empty()) look_in_cache(cache);
    for (const fs::path& packages : site_packages()) {
      look_below(packages / "xla_plugins", "python");
      look_below(packages / "jax_plugins", "python");
      look_in(packages / "libtpu", "python");
      look_in(packages / kDefaultPlugin, "python");
    }
    return std::move(result_);
  }

 private:
  void look_in_cache(const fs::path& cache) {
    for (const fs::path& inner : entries(cache / "plugins"))
      if (inner.filename().string().starts_with(kDefaultPlugin)) look_in(inner, "cache");
    look_below(cache / "plugins", "cache");
    // The CUDA plugin keeps its wheel's directories, in which it finds its assembler.
    for (const fs::path& inner : entries(cache / "plugins"))
      if (fs::is_directory(inner / "jax_plugins", error_))
        look_below(inner / "jax_plugins", "cache");
    look_below(cache / "xla_plugins", "cache");
  }

  void note(const fs::path& path, const char* reason, bool exists) {
    result_.places.push_back({path.string(), reason, exists});
  }

  void add(const fs::path& path, const char* reason) {
    fs::path real = fs::weakly_canonical(path, error_);
    if (std::ranges::find(seen_, real) != seen_.end()) return;
    seen_.push_back(real);
    result_.found.push_back({path.string(), guess_platform(path.string()), reason});
  }

  void look_in(const fs::path& folder, const char* reason) {
    bool exists = fs::is_directory(folder, error_);
    note(folder, reason, exists);
    for (const fs::path& path : entries(folder))
      if (looks_like_plugin(path)) add(path, reason);
  }

  // Searches the directory and its subdirectories: each wheel puts its plugin into its own.
  void look_below(const fs::path& folder, const char* reason) {
    look_in(folder, reason);
    for (const fs::path& inner : entries(folder))
      if (fs::is_directory(inner, error_))
        for (const fs::path& path : entries(inner))
          if (looks_like_plugin(path)) add(path, reason);
  }

  std::vector<fs::path> site_packages() const {
    std::vector<fs::path> roots;
    std::vector<fs::path> packages;
    for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
      if (auto root = read_(name)) roots.emplace_back(*root);
    if (auto home = read_("HOME")) roots.emplace_back(fs::path(*home) / ".local");
    roots.emplace_back("/usr/local");
    roots.emplace_back("/usr");
    for (const std::string& path : split(read_("PYTHONPATH").value_or(""), ':'))
      packages.emplace_back(path);
    for (const fs::path& root : roots)
      for (const fs::path& version : entries(root / "lib")) {
        std::error_code error;
        if (!version.filename().string().starts_with("python")) continue;
        for (const char* name : {"site-packages", "dist-packages"})
          if (fs::is_directory(version / name, error)) packages.push_back(version / name);
      }
    return packages;
  }

  ReadEnvironment read_;
  PluginSearch result_;
  std::vector<fs::path> seen_;
  std::error_code error_;
};

constexpr std::string_view kHeader = "meshard fetched 1";

std::optional<FetchedRecord> describe(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return std::nullopt;
  return FetchedRecord{"", about.st_size,
                       std::int64_t{about.st_mtim.tv_sec} * 1000000000 + about.st_mtim.tv_nsec,
                       about.st_uid};
}

Result<std::string> sha256_of_file(const std::string& path) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return Error(ErrorCode::kUnavailable, cat("[plugin] cannot read ", path));
  Sha256 hash;
  std::string bytes(1 << 20, '\0');
  while (std::size_t count = std::fread(bytes.data(), 1, bytes.size(), file.get()))
    hash.add(std::string_view(bytes).substr(0, count));
  if (std::ferror(file.get()) != 0)
    return Error(ErrorCode::kUnavailable, cat("[plugin] cannot read ", path));
  return hash.digits();
}

// Replaces the record atomically. In a read-only folder the old record stays, and the next load
// hashes the file again.
void replace_record(const std::string& path, const FetchedRecord& record) {
  PartFile part = PartFile::create(path, 0644);
  std::string text = record.to_string();
  if (part.file() >= 0 &&
      ::write(part.file(), text.data(), text.size()) == static_cast<ssize_t>(text.size()))
    (void)part.commit();
}

}  // namespace

PluginSearch find_plugins(const ReadEnvironment& environment) { return Search(environment).run(); }

std::string guess_platform(std::string_view path) {
  std::string name = fs::path(path).filename().string();
  auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("tpu")) return "tpu";
  if (has("cuda") || has("gpu")) return "cuda";
  if (has("rocm")) return "rocm";
  if (has("xpu") || has("oneapi") || has("sycl")) return "oneapi";
  if (has("cpu")) return "cpu";
  return "";
}

Result<std::string> PluginSearch::first(std::string_view platform) const {
  for (const FoundPlugin& plugin : found)
    if (plugin.platform == platform || plugin.reason == "MESHARD_PLUGIN") return plugin.path;
  std::string looked;
  for (const SearchedPlace& place : places) looked += cat("\n  ", place.path);
  bool fetched = platform == "cpu" || platform == "cuda" || platform == "tpu";
  return Error(ErrorCode::kNotFound,
               cat("[plugin] no plugin for platform ", platform, " was found; ",
                   fetched ? cat("`meshard fetch ", platform, "` downloads one, ") : "",
                   "`meshard doctor` shows which plugins are usable, and ",
                   "MESHARD_PLUGIN=/path/to/plugin.so specifies one. Searched", looked));
}

Result<FetchedRecord> FetchedRecord::parse(std::string_view text) {
  FetchedRecord record;
  std::istringstream lines{std::string(text)};
  std::string header, names[4];
  std::getline(lines, header);
  lines >> names[0] >> record.sha256 >> names[1] >> record.size >> names[2] >> record.time >>
      names[3] >> record.owner;
  bool whole = lines && header == kHeader && names[0] == "sha256" && names[1] == "size" &&
               names[2] == "time" && names[3] == "owner" && record.sha256.size() == 64;
  if (!whole)
    return Error(ErrorCode::kDataLoss, "[plugin] the record of a fetched file is damaged");
  return record;
}

std::string FetchedRecord::to_string() const {
  return cat(kHeader, "\nsha256 ", sha256, "\nsize ", size, "\ntime ", time, "\nowner ", owner,
             "\n");
}

Result<FetchedState> check_fetched_file(const std::string& path) {
  std::string record_path = path + ".fetched";
  std::ifstream file(record_path, std::ios::binary);
  if (!file) return FetchedState::kNoRecord;
  constexpr const char* kAgain = "; remove both and fetch it again with `meshard fetch`";
  auto record = FetchedRecord::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!record.ok())
    return Error(ErrorCode::kDataLoss, cat("[plugin] ", record_path, " is damaged", kAgain));
  auto found = describe(path);
  if (!found) return Error(ErrorCode::kNotFound, cat("[plugin] there is no file ", path));
  found->sha256 = record->sha256;
  if (*found == *record) return FetchedState::kUnchanged;
  MESHARD_ASSIGN_OR_RETURN(std::string hash, sha256_of_file(path));
  if (hash != record->sha256)
    return Error(ErrorCode::kDataLoss,
                 cat("[plugin] ", path, " changed since it was fetched: its SHA-256 is ", hash,
                     ", ", record_path, " says ", record->sha256, kAgain));
  replace_record(record_path, *found);
  return FetchedState::kHashChecked;
}

}  // namespace meshard::pjrt
