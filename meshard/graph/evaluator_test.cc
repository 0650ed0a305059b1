#include "meshard/graph/evaluator.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

// Gives every asked value zeros, and counts.
struct ZeroEvaluator final : Evaluator {
  void evaluate(std::span<const Value> values, SourceLocation) override {
    ++calls;
    for (const Value& value : values)
      value.node()->set_storage(value.index(),
                                make_storage<HostStorage>(HostArray::zeros(value.type())));
  }
  Tensor place(const Value& value, const Sharding&, SourceLocation) override {
    return Tensor(value);
  }
  std::shared_ptr<CompiledProgram> compile(Program, SourceLocation) override { return nullptr; }
  int calls = 0;
};

TEST(Evaluator, ComputeAsksOnceForWhatIsNotComputed) {
  static ZeroEvaluator zeros;
  install_evaluator([]() -> Evaluator& { return zeros; });
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  Tensor a = test::plus(x, x), b = test::plus(x, a);
  compute({a, b, x});
  EXPECT_EQ(zeros.calls, 1);
  EXPECT_EQ(a.to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(zeros.calls, 1) << "nothing runs twice";
  install_evaluator(nullptr);
}

}  // namespace
}  // namespace meshard
