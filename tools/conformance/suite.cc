#include "tools/conformance/suite.h"

namespace meshard::conformance {

const Suite* find_suite(std::string_view file) {
  static const Suite suites[] = {
#define SUITE(name) name##_suite(),
#include "tools/conformance/suites.inc"
#undef SUITE
  };
  for (const Suite& suite : suites)
    if (suite.file == file) return &suite;
  return nullptr;
}

bool has_tag(const Json& test, std::string_view tag) {
  if (!test.contains("tags")) return false;
  for (const Json& each : test.at("tags"))
    if (each == tag) return true;
  return false;
}

}  // namespace meshard::conformance
