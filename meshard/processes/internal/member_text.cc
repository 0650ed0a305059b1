// Tested in meshard/processes/loss_test.cc.
#include "meshard/processes/internal/member_text.h"

#include <charconv>

#include "meshard/base/cat.h"

namespace meshard::internal {

std::string seconds_text(std::chrono::milliseconds time) {
  auto tenths = time.count() / 100;
  return tenths % 10 == 0 ? cat(tenths / 10, " s") : cat(tenths / 10, '.', tenths % 10, " s");
}

std::string member_text(int rank, std::string_view host, int pid) {
  return cat("process ", rank, " (pid ", pid, " on ", host, ")");
}

std::string activity_text(std::string_view activity, std::chrono::milliseconds age) {
  if (activity.empty()) return "";
  return cat("; it was last in \"", activity, "\", ", seconds_text(age), " ago");
}

Result<std::int64_t> read_number(std::string_view text) {
  std::int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return Error(ErrorCode::kInvalidArgument, cat("[processes] \"", text, "\" is not a number"));
  return number;
}

}  // namespace meshard::internal
