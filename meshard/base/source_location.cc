#include "meshard/base/source_location.h"

#include <string_view>

#include "meshard/base/cat.h"

namespace meshard {

std::string SourceLocation::to_string() const {
  if (!known()) return {};
  std::string_view path(file);
  if (auto slash = path.rfind('/'); slash != path.npos) path.remove_prefix(slash + 1);
  // Functions that consist of other calls say which they are (graph/record.h).
  const bool is_call = std::string_view(function).starts_with("in ");
  return is_call ? cat(path, ":", line, ", ", function) : cat(path, ":", line);
}

}  // namespace meshard
