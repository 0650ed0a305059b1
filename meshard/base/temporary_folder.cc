#include "meshard/base/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "meshard/base/cat.h"

namespace meshard {
Result<TemporaryFolder> TemporaryFolder::create() {
  const char* root = std::getenv("TMPDIR");
  std::string name = cat(root != nullptr && *root != '\0' ? root : "/tmp", "/meshard-XXXXXX");
  if (::mkdtemp(name.data()) == nullptr)
    return Error(ErrorCode::kUnavailable,
                 cat("[file] cannot make the folder ", name, ": ", std::strerror(errno)));
  return TemporaryFolder(std::filesystem::absolute(name).string());
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace meshard
