#include "meshard/graph/structure_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "meshard/graph/from_host.h"
#include "meshard/graph/leaf.h"

namespace meshard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr structure::MatchNames kGradients{"sgd", "parameter", "gradient"};

Tensor number_of_match(float value) { return from_host(HostArray::scalar(value)); }

template <class A, class B>
std::vector<float> matched(const A& reference, const B& given) {
  std::vector<float> values;
  for (const Tensor& tensor : structure::matched_tensors(reference, given, kGradients, {}))
    values.push_back(tensor.item<float>());
  return values;
}

template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.message();
  }
  return "no error";
}

struct Part {
  Tensor w;
  double rate = 0;
  std::optional<Tensor> bias;
  MESHARD_FIELDS(w, rate, bias)
};

TEST(StructureMatch, TheOrderOfAMapDoesNotMatter) {
  std::unordered_map<std::string, Tensor> reference, given;
  std::vector<float> expected;
  for (int i = 0; i < 20; ++i)
    reference.emplace("p" + std::to_string(i), number_of_match(static_cast<float>(i)));
  for (int i = 19; i >= 0; --i)
    given.emplace("p" + std::to_string(i), number_of_match(static_cast<float>(i)));
  for (const auto& [key, tensor] : reference) expected.push_back(tensor.item<float>());
  EXPECT_EQ(matched(reference, given), expected);
}

TEST(StructureMatch, StructuresOfOtherTypesMatchByPath) {
  EXPECT_EQ(matched(std::pair(number_of_match(0), number_of_match(0)),
                    std::vector<Tensor>{number_of_match(1), number_of_match(2)}),
            (std::vector<float>{1, 2}));
}

TEST(StructureMatch, ListsWhatDiffersWithTypes) {
  using Map = std::map<std::string, Tensor>;
  const Map reference{{"a", number_of_match(1)}, {"b", number_of_match(2)}};
  const Map given{{"0", number_of_match(3)}, {"a", number_of_match(4)}};
  const std::string text = message_of([&] { matched(reference, given); });
  EXPECT_THAT(text, HasSubstr("[sgd] there are 2 parameters and 2 gradients"));
  EXPECT_THAT(text, HasSubstr("missing from the gradients: [\"b\"] f32[]"));
  EXPECT_THAT(text, HasSubstr("unexpected in the gradients: [\"0\"] f32[]"));
}

TEST(StructureMatch, ListsOfDifferentLengthsAndOptionals) {
  const std::vector<Tensor> two{number_of_match(1), number_of_match(2)}, one{number_of_match(1)};
  EXPECT_THAT(message_of([&] { matched(two, one); }), HasSubstr("missing from the gradients: [1]"));
  EXPECT_THAT(message_of([&] { matched(one, two); }),
              HasSubstr("unexpected in the gradients: [1]"));
  const Part with{number_of_match(1), 0, number_of_match(2)}, without{number_of_match(1), 0, {}};
  EXPECT_THAT(message_of([&] { matched(with, without); }), HasSubstr(".bias f32[]"));
}

TEST(StructureMatch, LongListsAreShortened) {
  const std::vector<Tensor> many(20, number_of_match(1));
  EXPECT_THAT(message_of([&] { matched(std::vector<Tensor>(), many); }),
              HasSubstr("[7] f32[] and 12 more"));
}

TEST(StructureMatch, NounsHaveTheirPlural) {
  const structure::MatchNames names{"optim.update", "parameter", "velocity"};
  EXPECT_THAT(message_of([&] {
                structure::matched_tensors(std::vector<Tensor>{number_of_match(1)},
                                           std::vector<Tensor>{}, names, {});
              }),
              HasSubstr("1 parameters and 0 velocities"));
}

TEST(StructureMatch, WholesAreCounted) {
  const structure::MatchNames names{"vjp", "result", "cotangent", true};
  EXPECT_THAT(message_of([&] {
                structure::matched_tensors(number_of_match(1), std::vector<Tensor>{}, names, {});
              }),
              HasSubstr("the result has 1 tensors, but the cotangent has 0"));
}

TEST(StructureMatch, ShapesAreThoseAtThePath) {
  const std::vector<Tensor> two{number_of_match(1), number_of_match(2)};
  std::vector<Tensor> other = two;
  other[1] = from_host(HostArray::from_vector<float>({1, 2}, Shape({2})));
  EXPECT_THAT(message_of([&] { structure::matched_shapes(two, other, kGradients, {}); }),
              HasSubstr("[sgd] parameter [1] is f32[], but its gradient is f32[2]"));
  EXPECT_EQ(structure::matched_shapes(two, two, kGradients, {}).size(), 2u);
}

TEST(StructureMatch, NumbersAndStaticsMustBeEqual) {
  const Part one{number_of_match(1), 1.5, {}}, other{number_of_match(2), 2.5, {}};
  EXPECT_EQ(structure::constant_difference(one, one), "");
  EXPECT_EQ(structure::constant_difference(one, other), ".rate is 1.5 and 2.5");
  const std::map<std::string, std::vector<std::pair<Tensor, int>>> map{{"x", {{Tensor(), 1}}}},
      other_map{{"x", {{Tensor(), 2}}}};
  EXPECT_EQ(structure::constant_difference(map, other_map), "[\"x\"][0][1] is 1 and 2");
  EXPECT_EQ(structure::constant_difference(std::pair(Static{3}, 1), std::pair(Static{4}, 1)),
            "[0] is 3 and 4");
  const structure::MatchNames names{"scan", "carry", "result", true};
  EXPECT_THAT(message_of([&] { structure::check_constants(one, other, names, {}); }),
              HasSubstr("[scan] .rate is 1.5 and 2.5 in the carry and in the result"));
  EXPECT_THAT(message_of([&] { structure::check_constants(one, one, names, {}); }),
              Not(HasSubstr(".rate")));
}

}  // namespace
}  // namespace meshard
