// Tested in tests/e2e/host_calls_test.cc.
#include "meshard/runtime/nan_check.h"

#include <cstdlib>
#include <string_view>

#include "meshard/base/error.h"

namespace meshard {
namespace {

std::atomic<bool>& setting() {
  static std::atomic<bool> on = [] {
    const char* text = std::getenv("MESHARD_CHECK_NANS");
    return text && std::string_view(text) == "1";
  }();
  return on;
}

}  // namespace

void set_check_nans(bool on) { setting() = on; }
bool checks_nans() { return setting().load(std::memory_order_relaxed); }

void internal::throw_found_nan(const LoweredModule& program, SourceLocation where) {
  NanChecks::Found found = program.nan_checks->found();
  if (!found.result) return;
  std::string result = cat("result ", found.result->result, ", ", found.result->type, ", of \"",
                           program.name, "\" has a NaN");
  if (!found.operation)
    throw Error(ErrorCode::kOutOfRange,
                cat("[check_nans] ", result,
                    ", and no operation produced it: an argument or a captured value has one"),
                where);
  throw Error(ErrorCode::kOutOfRange,
              cat("[check_nans] the first operation that produced a NaN is ", found.operation->op,
                  ", ", found.operation->type, ", made here"),
              found.operation->where)
      .with_note(where.known() ? cat(result, ", which was called at ", where) : result);
}

}  // namespace meshard
