// Tested in meshard/target/compile_for_test.cc.
#include "meshard/target/dumped_program.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "meshard/base/temporary_folder.h"
#include "meshard/base/whole_file.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

// The sharding propagation pass: Shardy's and GSPMD's.
constexpr const char* kPropagationPass = "^(shardy-xla|sharding-propagation)$";
constexpr std::string_view kOptimizedEnd = "after_optimizations.hlo.pb";

// File names are `module_0000.NAME.after_optimizations.hlo.pb`, `module_0001.NAME.
// sm_9.0a_gpu_after_optimizations.hlo.pb` and
// `module_0000.NAME.0001.PIPELINE.after_PASS.before_NEXT.hlo.pb`.
bool is_propagated(std::string_view name) {
  return name.ends_with(".hlo.pb") &&
         (name.find(".after_shardy-xla.") != std::string_view::npos ||
          name.find(".after_sharding-propagation.") != std::string_view::npos);
}

struct DumpedFile {
  std::string name;
  std::uintmax_t size = 0;
};

std::vector<DumpedFile> dumped_files(const std::string& folder) {
  std::vector<DumpedFile> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_regular_file(ignored))
      files.push_back({at->path().filename().string(), at->file_size(ignored)});
  }
  std::sort(files.begin(), files.end(),
            [](const DumpedFile& a, const DumpedFile& b) { return a.name < b.name; });
  return files;
}

// The prefix `module_0000.`: some compilers also compile helper modules, numbered separately.
std::string_view module_number(std::string_view name) { return name.substr(0, name.find('.') + 1); }

}  // namespace

void ask_for_dumps(const std::string& folder, pjrt::CompileOptions& options) {
  options.overrides.try_emplace("xla_dump_to", folder);
  options.overrides.try_emplace("xla_dump_hlo_as_proto", true);
  options.overrides.try_emplace("xla_dump_hlo_pass_re", std::string(kPropagationPass));
}

void read_dumps(const std::string& folder, Compiled& to) {
  std::vector<DumpedFile> files = dumped_files(folder);
  const DumpedFile* optimized = nullptr;  // of the largest module
  for (const DumpedFile& file : files)
    if (file.name.ends_with(kOptimizedEnd) && (!optimized || file.size > optimized->size))
      optimized = &file;
  if (optimized == nullptr) return;
  const DumpedFile* propagated = nullptr;  // the last file of the same module
  for (const DumpedFile& file : files)
    if (is_propagated(file.name) && module_number(file.name) == module_number(optimized->name))
      propagated = &file;
  auto read = [&](const DumpedFile& file) {
    return read_whole_file((fs::path(folder) / file.name).string()).value_or(std::string());
  };
  to.buffer_assignment = read(*optimized);
  if (propagated != nullptr) to.propagated_program = read(*propagated);
}

}  // namespace meshard
