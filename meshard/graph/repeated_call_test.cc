#include "meshard/graph/repeated_call.h"

#include <gtest/gtest.h>

#include "meshard/graph/graph.h"
#include "meshard/graph/graph_text.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

using test::pair;
using test::plus;
using test::scale;

Tensor row(float first) { return from_host(std::vector<float>{first, 2}, {2}); }

std::string program(const Tensor& result) {
  return to_string(Graph::build({}, {{result.value()}}, 0));
}

// What f records again for `again`, after it was recorded for `first`.
template <class F>
std::vector<Tensor> repeated(const F& f, std::vector<Tensor> first, std::vector<Tensor> again) {
  auto values = [](const std::vector<Tensor>& tensors) {
    std::vector<Value> found;
    for (const Tensor& tensor : tensors) found.push_back(tensor.value());
    return found;
  };
  const std::uint64_t id = Node::next_id();
  std::optional<RepeatedCall> call = RepeatedCall::of(values(first), values(f(first)), id);
  return call ? call->record(values(again), {"user.py", "", 7}) : std::vector<Tensor>{};
}

TEST(RepeatedCall, RecordsWhatTheFunctionRecords) {
  auto f = [](const std::vector<Tensor>& x) {
    Tensor both = pair(plus(x[0], scale(x[1], 3)));
    Tensor flag(Value(both.value().node(), 1));
    return std::vector<Tensor>{scale(both, 2, {4}), flag, x[1], test::one()};
  };
  std::vector<Tensor> now = {row(3), plus(row(4), row(5))};
  std::vector<Tensor> expected = f(now), made = repeated(f, {row(1), row(2)}, now);
  ASSERT_EQ(made.size(), 4u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(program(made[i]), program(expected[i])) << i;
    EXPECT_EQ(made[i].type(), expected[i].type()) << i;
  }
  EXPECT_EQ(made[2].value(), now[1].value());
  EXPECT_EQ(program(made[3]), program(expected[3]));
  EXPECT_EQ(made[0].where().line, 7u);
  EXPECT_EQ(made[0].value()->operands()[0]->where().line, 7u);
}

TEST(RepeatedCall, KeepsNumbersAndNoOtherStoredValues) {
  auto with_number = [](const std::vector<Tensor>& x) {
    Tensor first = make_array({DType::f32, Shape{}}, number_storage(DType::f32, 0.5), {}),
           second = make_array({DType::f32, Shape{}}, number_storage(DType::f32, 3), {});
    return std::vector<Tensor>{scale(x[0], 2), plus(second, first)};
  };
  Tensor again = row(3);
  std::vector<Tensor> made = repeated(with_number, {row(1)}, {again}),
                      expected = with_number({again});
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[1].value()->operands()[0]->storage()->to_host({}).item<float>(), 3);
  EXPECT_EQ(made[1].value()->operands()[1]->storage()->to_host({}).item<float>(), 0.5f);
  // The same program as if the function had run.
  std::vector<Value> now = {made[0].value(), made[1].value()},
                     then = {expected[0].value(), expected[1].value()};
  EXPECT_EQ(Graph::build({}, now, 0).fingerprint(), Graph::build({}, then, 0).fingerprint());

  auto with_array = [](const std::vector<Tensor>& x) {
    return std::vector<Tensor>{plus(x[0], row(9))};
  };
  EXPECT_TRUE(repeated(with_array, {row(1)}, {row(3)}).empty()) << "it may be random";
  Tensor before = scale(row(1), 2);
  auto with_earlier = [&](const std::vector<Tensor>& x) {
    return std::vector<Tensor>{plus(x[0], before)};
  };
  EXPECT_TRUE(repeated(with_earlier, {row(1)}, {row(3)}).empty());
}

TEST(RepeatedCall, IsNoneIfAPartHasRun) {
  auto f = [](const std::vector<Tensor>& x) {
    Tensor inner = scale(x[0], 2), result = plus(inner, x[0]);
    inner.value().node()->set_storage(0, StoragePtr(x[0].value().storage()));
    return std::vector<Tensor>{result};
  };
  EXPECT_TRUE(repeated(f, {row(1)}, {row(3)}).empty());
}

TEST(RepeatedCall, IsNoneForAnnotatedValues) {
  auto f = [](const std::vector<Tensor>& x) {
    return std::vector<Tensor>{test::local(x[0], {"x"}, {"x"})};
  };
  EXPECT_TRUE(repeated(f, {row(1)}, {row(3)}).empty());
}

TEST(RepeatedCall, KeepsNoArgumentsAlive) {
  Tensor x = scale(row(1), 2);
  std::optional<RepeatedCall> call;
  {
    const std::uint64_t id = Node::next_id();
    Tensor y = plus(x, x);
    call = RepeatedCall::of({{x.value()}}, {{y.value()}}, id);
  }
  ASSERT_TRUE(call);
  EXPECT_EQ(x.value()->references(), 1u);
}

}  // namespace
}  // namespace meshard
