#include "meshard/plan/next_results.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TemplateValue named(std::string name, Shape shape) {
  TemplateValue value;
  value.name = std::move(name);
  value.type = TensorType{DType::f32, std::move(shape)};
  return value;
}

std::vector<std::optional<std::size_t>> found(std::vector<TemplateValue> arguments,
                                              const std::vector<TemplateValue>& results,
                                              std::vector<bool> donors = {}) {
  donors.resize(arguments.size());
  find_next_results(arguments, donors, results);
  std::vector<std::optional<std::size_t>> numbers;
  for (const TemplateValue& argument : arguments) numbers.push_back(argument.next_result);
  return numbers;
}

using Numbers = std::vector<std::optional<std::size_t>>;
constexpr auto kNone = std::nullopt;

TEST(NextResults, ByMemory) {
  std::vector<TemplateValue> arguments = {named("a", {4}), named("b", {4})};
  arguments[0].aliased_result = 1;
  arguments[1].aliased_result = 7;  // there is no such result
  EXPECT_EQ(found(arguments, {named("", {8}), named("", {4})}), (Numbers{1, kNone}));
}

TEST(NextResults, ByTheNamesOfJax) {
  std::vector<TemplateValue> arguments = {named("p['b']", {8}), named("p['w']", {4, 8}),
                                          named("m['w']", {4, 8}), named("x", {2, 4})};
  // As JAX names the results of `return loss, p, m`.
  EXPECT_EQ(found(arguments, {named("result[0]", {}), named("result[1]['b']", {8}),
                              named("result[1]['w']", {4, 8}), named("result[2]['w']", {4, 8})}),
            (Numbers{1, 2, 3, kNone}));
  // As older versions do, and of `return p`.
  EXPECT_EQ(found(arguments, {named("[0]['w']", {4, 8}), named("[1]['w']", {4, 8})}),
            (Numbers{kNone, 0, 1, kNone}));
  EXPECT_EQ(found({named("p['w']", {4, 8})}, {named("result['w']", {4, 8})}), (Numbers{0}));
  EXPECT_EQ(found({named("p[0]", {4, 8}), named("p[1]", {4, 8})},
                  {named("result[0][0]", {4, 8}), named("result[0][1]", {4, 8})}),
            (Numbers{0, 1}));
  // Another type is another value.
  EXPECT_EQ(found({named("p['w']", {4, 8})}, {named("result['w']", {8, 4})}), (Numbers{kNone}));
}

TEST(NextResults, ByDonation) {
  std::vector<TemplateValue> arguments = {named("x", {4}), named("y", {8}), named("z", {4})};
  std::vector<TemplateValue> results = {named("", {2}), named("", {4}), named("", {4})};
  EXPECT_EQ(found(arguments, results, {true, false, true}), (Numbers{1, kNone, 2}));
  EXPECT_EQ(found(arguments, results), (Numbers{kNone, kNone, 2}));  // by position
}

TEST(NextResults, APositionCountsOnlyWithoutASharding) {
  std::vector<TemplateValue> results = {named("", {4})};
  EXPECT_EQ(found({named("x", {4})}, results), (Numbers{0}));
  results[0].spec = P("x");
  EXPECT_EQ(found({named("x", {4})}, results), (Numbers{kNone}));
  EXPECT_EQ(found({named("x", {})}, {named("", {})}), (Numbers{kNone}));
}

}  // namespace
}  // namespace meshard
