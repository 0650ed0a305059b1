// Tested in tests/e2e/host_calls_test.cc.
#include "meshard/runtime/nan_check.h"

#include <cstdlib>
#include <string_view>

#include "meshard/base/error.h"

namespace meshard {

constinit std::atomic<int> internal::nan_check_setting{-1};

bool internal::read_nan_check_setting() {
  const char* text = std::getenv("MESHARD_CHECK_NANS");
  int known = -1;
  nan_check_setting.compare_exchange_strong(known, text && std::string_view(text) == "1" ? 1 : 0);
  return nan_check_setting == 1;
}

void set_check_nans(bool on) { internal::nan_check_setting = on ? 1 : 0; }

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
