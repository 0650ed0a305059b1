// Files by which both sides start from the same parameters.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

#include "meshard/meshard.h"

namespace meshard::bench {

/// A folder that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "meshard-peers-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Error(ErrorCode::kUnavailable, cat("[bench] cannot make the folder ", name));
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A path in the folder for optimized programs; empty if they are not kept.
inline std::string program_file(const std::string& folder, const std::string& name) {
  return folder.empty() ? "" : folder + "/" + name;
}

}  // namespace meshard::bench
