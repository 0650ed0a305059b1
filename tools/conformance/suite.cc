#include "tools/conformance/suite.h"

namespace meshard::conformance {

namespace {

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t star = pattern.find('*');
  if (star == pattern.npos) return pattern == name;
  std::string_view before = pattern.substr(0, star), after = pattern.substr(star + 1);
  return name.size() >= before.size() + after.size() && name.starts_with(before) &&
         name.ends_with(after);
}

}  // namespace

const Suite* find_suite(std::string_view file) {
  static const Suite suites[] = {
#define SUITE(name) name##_suite(),
#include "tools/conformance/suites.inc"
#undef SUITE
  };
  for (const Suite& suite : suites)
    if (matches(suite.file, file)) return &suite;
  return nullptr;
}

bool has_tag(const Json& test, std::string_view tag) {
  if (!test.contains("tags")) return false;
  for (const Json& each : test.at("tags"))
    if (each == tag) return true;
  return false;
}

}  // namespace meshard::conformance
