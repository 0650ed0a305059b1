#include "meshard/explain/collectives/source_places.h"

#include <set>
#include <unordered_set>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/explain/collectives/origin.h"

namespace meshard {
namespace {

// The last `folders` + 1 components of a path.
std::string_view tail(std::string_view path, int folders) {
  std::size_t at = path.size();
  for (int i = 0; i <= folders; ++i) {
    if (at == 0) return path;
    at = path.rfind('/', at - 1);
    if (at == std::string_view::npos) return path;
  }
  return path.substr(at + 1);
}

// Follows a Python installation's folder, `lib/python3.12/`.
bool is_in_python_library(std::string_view path) {
  constexpr std::string_view kFolder = "/lib/python3";
  std::size_t at = path.find(kFolder);
  return at != std::string_view::npos &&
         path.find('/', at + kFolder.size()) != std::string_view::npos;
}

}  // namespace

bool is_library_file(std::string_view path) {
  if (path.starts_with("<")) return true;
  for (std::string_view folder : {"/site-packages/", "/dist-packages/", "/jax/_src/"})
    if (path.find(folder) != std::string_view::npos) return true;
  return is_in_python_library(path);
}

SourcePlaces::SourcePlaces(const HloModule& module) : module_(&module) {
  std::set<std::string> files;
  for (const HloFrame& frame : module.frames) files.insert(frame.file);
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& each : computation.instructions)
      files.insert(each.metadata.source_file);
  files.erase("");
  std::unordered_map<std::string_view, std::vector<const std::string*>> alike;
  for (const std::string& file : files) alike[tail(file, 0)].push_back(&file);
  for (const auto& [name, paths] : alike) {
    if (paths.size() == 1) continue;  // named without folders
    int folders = 1;
    for (bool unique = false; !unique; ++folders) {
      std::unordered_set<std::string_view> tails;
      for (const std::string* path : paths) tails.insert(tail(*path, folders));
      unique = tails.size() == paths.size();
      if (unique) break;
    }
    for (const std::string* path : paths) short_names_.emplace(*path, tail(*path, folders));
  }
}

std::string SourcePlaces::line(const std::string& file, std::int64_t number) const {
  if (file.empty()) return "";
  auto found = short_names_.find(file);
  std::string_view name = found == short_names_.end() ? tail(file, 0) : found->second;
  return cat(name, ":", number);
}

SourcePlace SourcePlaces::of(const HloMetadata& metadata) const {
  SourcePlace own{.place = line(metadata.source_file, metadata.source_line), .via = {}};
  if (!module_) return own;
  const std::vector<HloFrame>& frames = module_->frames;
  std::string innermost;
  // The number of steps is limited, because a damaged module could have a cycle.
  std::int64_t at = metadata.stack_frame;
  for (std::size_t step = 0; step < frames.size() && at >= 1 && at <= std::ssize(frames); ++step) {
    const HloFrame& frame = frames[static_cast<std::size_t>(at - 1)];
    at = frame.parent;
    if (frame.file.empty()) continue;
    if (!is_library_file(frame.file))
      return {.place = line(frame.file, frame.line), .via = innermost};
    if (innermost.empty()) innermost = line(frame.file, frame.line);
  }
  return own;
}

void name_by_lines(const std::map<std::int64_t, std::string>& names, HloModule& module) {
  if (names.empty()) return;
  std::unordered_map<std::string, std::int64_t> lines;  // by name; 0: of several ops
  for (const auto& [line, name] : names) {
    auto [found, is_new] = lines.emplace(name, line);
    if (!is_new) found->second = 0;
  }
  for (HloComputation& computation : module.computations)
    for (HloInstruction& each : computation.instructions) {
      HloMetadata& metadata = each.metadata;
      if (metadata.op_name.empty() && metadata.source_file == "-") {
        auto found = names.find(metadata.source_line);
        if (found != names.end()) metadata.op_name = found->second;
      } else if (!metadata.op_name.empty() && metadata.source_file.empty()) {
        auto found = lines.find(op_of_instruction(metadata.op_name));
        if (found == lines.end() || found->second == 0) continue;
        metadata.source_file = "-";
        metadata.source_line = found->second;
      }
    }
}

}  // namespace meshard
