#include "meshard/base/source_location.h"

#include <string_view>

#include "meshard/base/cat.h"

namespace meshard {

std::string SourceLocation::to_string() const {
  if (!known()) return {};
  std::string_view path(file);
  if (auto slash = path.rfind('/'); slash != path.npos) path.remove_prefix(slash + 1);
  return cat(path, ":", line);
}

}  // namespace meshard
