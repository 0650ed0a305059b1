#include "meshard/base/environment.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

template <class Number>
Result<Number> read(const char* name, Number otherwise, Number least, Number most,
                    std::string_view kind) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  std::string_view digits(text);
  Number number{};
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  // `not` also refuses NaN.
  if (error != std::errc() || end != digits.data() + digits.size() ||
      !(number >= least && number <= most))
    return Error(ErrorCode::kInvalidArgument,
                 cat("[environment] ", name, " is '", digits, "': expected a ", kind, " from ",
                     least, " to ", most));
  return number;
}

}  // namespace

Result<std::int64_t> environment_integer(const char* name, std::int64_t otherwise,
                                         std::int64_t least, std::int64_t most) {
  return read(name, otherwise, least, most, "whole number");
}

Result<double> environment_number(const char* name, double otherwise, double least, double most) {
  return read(name, otherwise, least, most, "number");
}

}  // namespace meshard
