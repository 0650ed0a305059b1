#include "meshard/base/fields.h"

#include <gtest/gtest.h>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

struct Layer {
  int width = 3;
  double scale = 0.5;
  MESHARD_FIELDS(width, scale)
};
struct Nothing {
  MESHARD_FIELDS()
};

TEST(Fields, AreVisitedInOrderWithTheirNames) {
  Layer layer;
  std::string seen;
  visit_fields(layer, [&](std::string_view name, auto& field) {
    append(seen, cat(name, "=", field, ";"));
    field = 7;
  });
  EXPECT_EQ(seen, "width=3;scale=0.5;");
  EXPECT_EQ(layer.width, 7);
  const Layer& constant = layer;
  int count = 0;
  visit_fields(constant, [&](std::string_view, const auto&) { ++count; });
  EXPECT_EQ(count, 2);
}

TEST(Fields, MayBeNone) {
  Nothing nothing;
  visit_fields(nothing, [](std::string_view, auto&) { FAIL(); });
  static_assert(HasFields<Nothing>);
  static_assert(!HasFields<int>);
}

}  // namespace
}  // namespace meshard
