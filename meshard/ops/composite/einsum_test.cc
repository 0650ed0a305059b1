#include "meshard/ops/composite/einsum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "meshard/ops/composite/internal/contraction.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard {
using namespace internal;
namespace {

Shape shape(std::string_view spec, std::vector<Shape> shapes) {
  std::vector<Tensor> operands;
  for (Shape& each : shapes) operands.push_back(input(each));
  return einsum(spec, operands).shape();
}

// As in NumPy.
TEST(Einsum, Shapes) {
  EXPECT_EQ(shape("ij,jk->ik", {{2, 3}, {3, 4}}), (Shape{2, 4}));
  EXPECT_EQ(shape("ij,jk->ki", {{2, 3}, {3, 4}}), (Shape{4, 2}));
  EXPECT_EQ(shape("ij,jk", {{2, 3}, {3, 4}}), (Shape{2, 4}));
  EXPECT_EQ(shape("ba", {{2, 3}}), (Shape{3, 2}));
  EXPECT_EQ(shape("ij->", {{2, 3}}), Shape{});
  EXPECT_EQ(shape("bhts, bhsk -> bthk", {{2, 3, 4, 5}, {2, 3, 5, 6}}), (Shape{2, 4, 3, 6}));
  EXPECT_EQ(shape("...ij,jk->...ik", {{7, 1, 2, 3}, {3, 4}}), (Shape{7, 1, 2, 4}));
  EXPECT_EQ(shape("...i,...i->...", {{7, 1, 2}, {5, 2}}), (Shape{7, 5}));
  EXPECT_EQ(shape("i...,j...", {{2, 7}, {3, 7}}), (Shape{7, 2, 3}));
  EXPECT_EQ(shape("ab,bc,cd->ad", {{2, 3}, {3, 4}, {4, 5}}), (Shape{2, 5}));
  EXPECT_EQ(shape("abc,cd->bad", {{2, 3, 4}, {4, 5}}), (Shape{3, 2, 5}));
  EXPECT_EQ(shape("i,j->ij", {{2}, {3}}), (Shape{2, 3}));
  EXPECT_EQ(shape("ij,k->k", {{2, 3}, {4}}), Shape{4});
}

TEST(Einsum, TakesDiagonals) {
  Tensor x = from_host<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(interpret(einsum("ii->i", {x})), HostArray::from_vector<float>({1, 4}));
  EXPECT_EQ(interpret(einsum("ii", {x})).item<float>(), 5.0f);
}

// The sum over all labels that are not in the result, by definition.
std::vector<double> by_definition(const std::vector<std::string>& terms, const std::string& result,
                                  const std::vector<HostArray>& operands) {
  std::map<char, std::int64_t> size;
  for (std::size_t k = 0; k < terms.size(); ++k)
    for (std::size_t d = 0; d < terms[k].size(); ++d)
      size[terms[k][d]] = std::max(size[terms[k][d]], operands[k].shape()[static_cast<int>(d)]);
  std::string order = result;
  for (const auto& known : size)
    if (order.find(known.first) == order.npos) order += known.first;
  std::int64_t total = 1, kept = 1;
  for (char label : order) total *= size[label];
  for (char label : result) kept *= size[label];
  std::vector<double> out(static_cast<std::size_t>(kept), 0);
  for (std::int64_t flat = 0; flat < total; ++flat) {
    std::map<char, std::int64_t> at;
    std::int64_t rest = flat;
    for (std::size_t i = order.size(); i-- > 0; rest /= size[order[i]])
      at[order[i]] = rest % size[order[i]];
    double product = 1;
    for (std::size_t k = 0; k < terms.size(); ++k) {
      std::int64_t place = 0;
      for (std::size_t d = 0; d < terms[k].size(); ++d) {
        std::int64_t own = operands[k].shape()[static_cast<int>(d)];
        place = place * own + (own == 1 ? 0 : at[terms[k][d]]);
      }
      product *= operands[k].data<double>()[static_cast<std::size_t>(place)];
    }
    out[static_cast<std::size_t>(flat / (total / kept))] += product;
  }
  return out;
}

TEST(Einsum, ValuesAreTheDefinitions) {
  struct Case {
    std::string spec;  // as written
    std::vector<std::string> terms;
    std::string result;
    std::vector<Shape> shapes;
  };
  const std::vector<Case> cases{
      {"ab,bc,cd,da->", {"ab", "bc", "cd", "da"}, "", {{2, 3}, {3, 4}, {4, 5}, {5, 2}}},
      {" ab , bc , cd -> ad ", {"ab", "bc", "cd"}, "ad", {{2, 3}, {3, 2}, {2, 4}}},
      {"i,i,i->", {"i", "i", "i"}, "", {{3}, {1}, {3}}},
      {"i,i,i->i", {"i", "i", "i"}, "i", {{1}, {3}, {1}}},
      {"iij,jk->ik", {"iij", "jk"}, "ik", {{2, 2, 3}, {3, 2}}},
      {"aab,bcc->ac", {"aab", "bcc"}, "ac", {{2, 2, 3}, {3, 2, 2}}},
      {"ij,kl->jl", {"ij", "kl"}, "jl", {{2, 3}, {2, 4}}},
      {"iji", {"iji"}, "j", {{2, 3, 2}}},
      {"ab,ac,ad->a", {"ab", "ac", "ad"}, "a", {{2, 3}, {2, 4}, {2, 2}}},
      // The ellipsis is one dimension, which is broadcast.
      {"...a,...ab->...b", {"xa", "xab"}, "xb", {{1, 3}, {2, 3, 2}}},
      {"a,b,c,d,e,f,g,h,i->aei",
       {"a", "b", "c", "d", "e", "f", "g", "h", "i"},
       "aei",
       {{2}, {1}, {2}, {1}, {2}, {2}, {1}, {2}, {2}}},
      {"Za,aB", {"Za", "aB"}, "BZ", {{2, 3}, {3, 4}}},
  };
  SampleSource source(5);
  for (const Case& test : cases) {
    SCOPED_TRACE(test.spec);
    std::vector<HostArray> arrays;
    std::vector<Tensor> operands;
    for (const Shape& shape : test.shapes) {
      arrays.push_back(source.uniform(DType::f64, shape));
      operands.push_back(from_host(arrays.back()));
    }
    std::vector<double> expected = by_definition(test.terms, test.result, arrays);
    std::vector<double> got = interpret(einsum(test.spec, operands)).to_vector<double>();
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
  }
}

TEST(Einsum, TheCheapestOrderIsTaken) {
  // (a b) c: 100*2*100 + 100*100*2; a (b c): 2*100*2 + 100*2*2.
  std::map<int, std::int64_t> sizes{{'i', 100}, {'j', 2}, {'k', 100}, {'l', 2}};
  using Steps = std::vector<std::pair<std::size_t, std::size_t>>;
  std::vector<Labels> chain{{'i', 'j'}, {'j', 'k'}, {'k', 'l'}};
  EXPECT_EQ(contraction_order(chain, {'i', 'l'}, sizes), (Steps{{1, 2}, {0, 1}}));
  sizes['i'] = 1;
  sizes['j'] = 100;
  // Now from the left: 1*100*100 + 1*100*2 against 100*100*2 + 1*100*2.
  EXPECT_EQ(contraction_order(chain, {'i', 'l'}, sizes), (Steps{{0, 1}, {0, 1}}));
  EXPECT_TRUE(contraction_order({{'i'}}, {'i'}, sizes).empty());
  // With many operands, the cheapest pair is contracted each time: nothing here needs more than 2
  // labels at once.
  std::vector<Labels> ring;
  for (int i = 0; i < 10; ++i) {
    sizes['A' + i] = 3;
    ring.push_back({'A' + i, 'A' + (i + 1) % 10});
  }
  Steps steps = contraction_order(ring, {}, sizes);
  ASSERT_EQ(steps.size(), 9u);
  for (const auto& step : steps) EXPECT_LT(step.first, step.second);
}

TEST(Einsum, Errors) {
  auto fails = [](std::string_view spec, std::vector<Shape> shapes,
                  std::vector<std::string> parts) {
    return throws_error([&] { shape(spec, shapes); }, ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(fails("ij,jk->ik", {{2, 3}, {4, 5}}, {"[einsum] sizes differ", "= 3", "= 4"}));
  EXPECT_TRUE(fails("ij->ij", {{2, 3}, {4, 5}}, {"2 operands are given, but 1 are named"}));
  EXPECT_TRUE(fails("ij->ii", {{2, 3}}, {"names `i` twice", "\"ij->ii\""}));
  EXPECT_TRUE(fails("ij->k", {{2, 3}}, {"names `k`", "no operand"}));
  EXPECT_TRUE(fails("i1->i", {{2, 3}}, {"`i1`"}));
  EXPECT_TRUE(fails("ijk->i", {{2, 3}}, {"f32[2,3]", "rank 2", "names 3"}));
  EXPECT_TRUE(fails("i->i", {{2, 3}}, {"names 1"}));
  EXPECT_TRUE(fails("ii->i", {{2, 3}}, {"diagonal", "= 2", "= 3"}));
  EXPECT_TRUE(fails("...i->i", {{2, 3}}, {"no ellipsis"}));
}

}  // namespace
}  // namespace meshard
