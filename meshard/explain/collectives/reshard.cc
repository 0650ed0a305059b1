// Tested in meshard/explain/report_test.cc.
#include "meshard/explain/collectives/reshard.h"

#include "meshard/base/cat.h"
#include "meshard/explain/byte_text.h"

namespace meshard {

std::string_view to_string(ReshardKind kind) { return enum_name(kind); }

std::string Reshard::to_string() const {
  std::string text = cat(meshard::to_string(kind), type.empty() ? "" : " of ", type);
  if (!from.empty() || !to.empty()) append(text, cat(" from ", from, " to ", to));
  append(text, cat(", ", byte_text(bytes)));
  if (executions != 1) append(text, cat(" x ", executions));
  append(text, cat(", from ", origin.to_string()));
  if (who != CollectiveCause::kUnknown) append(text, cat(", ", meshard::to_string(who)));
  if (!cause.empty()) append(text, cat(": ", cause));
  return text;
}

}  // namespace meshard
