#include "meshard/base/fields.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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

// The types that the static_assert in visit_fields() checks; tests/error compiles whole programs.
template <class T>
struct Forgotten {
  int named = 0;
  T other{};
  MESHARD_FIELDS(named)
};
template <class T>
struct ForgottenFirst {
  T other{};
  int named = 0;
  MESHARD_FIELDS(named)
};
template <class T>
struct Named {
  int named = 0;
  T other{};
  MESHARD_FIELDS(named, other)
};
struct Pair {
  int a, b;
  MESHARD_FIELDS(a, b)
};
template <class... T>
constexpr bool all_are_counted() {
  using internal::names_all_members;
  return ((!names_all_members<Forgotten<T>>() && !names_all_members<ForgottenFirst<T>>() &&
           names_all_members<Named<T>>()) &&
          ...);
}

TEST(Fields, EveryMemberOfAnAggregateIsCounted) {
  static_assert(all_are_counted<int, bool, double, int*, Layer, Pair, int[3], Pair[2][2]>());
  static_assert(
      all_are_counted<std::string, std::vector<Pair>, std::optional<Pair>, std::optional<int>,
                      std::pair<int, Pair>, std::tuple<Pair>, std::array<Pair, 2>,
                      std::map<std::string, int>, std::function<void()>, std::unique_ptr<int>>());
}

struct Derived : Pair {
  int c;
  MESHARD_FIELDS(a, b, c)
};
struct ForgotTheBase : Pair {
  int c;
  MESHARD_FIELDS(c)
};
struct ForgotAll : Pair {
  int c;
};
struct Unchanged : Pair {};
struct Tag {};
struct Tagged : Tag {
  int a;
  MESHARD_FIELDS(a)
};
struct TaggedForgotten : Tag {
  int a, b;
  MESHARD_FIELDS(a)
};

TEST(Fields, MembersOfBaseClassesCount) {
  static_assert(internal::names_all_members<Derived>());
  static_assert(!internal::names_all_members<ForgotTheBase>());
  static_assert(!internal::names_all_members<ForgotAll>());
  static_assert(internal::names_all_members<Unchanged>());
  static_assert(internal::names_all_members<Tagged>());
  static_assert(!internal::names_all_members<TaggedForgotten>());
}

struct Made {
  explicit Made(int);
  int a;
  double b;
  bool c;
  MESHARD_FIELDS(c, a, b)
};
class MadeForgotten {
 public:
  explicit MadeForgotten(int);
  MESHARD_FIELDS(named)

 private:
  int named;
  double forgotten;
};
struct Virtual {
  virtual ~Virtual();
  int a;
  static constexpr int kShared = 3;
  MESHARD_FIELDS(a)
};

TEST(Fields, OtherClassesAreToldByTheirSize) {
  static_assert(internal::names_all_members<Made>());
  static_assert(!internal::names_all_members<MadeForgotten>());
  static_assert(internal::names_all_members<Virtual>() && Virtual::kShared == 3);
}

}  // namespace
}  // namespace meshard
