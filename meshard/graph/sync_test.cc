#include "meshard/graph/sync.h"

#include <gtest/gtest.h>

#include <map>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// A storage that counts the waits for it; the 100th wait fails.
struct WaitedFor final : Storage {
  explicit WaitedFor(int* count) : Storage(Kind::kAbstract), waits(count) {}
  HostArray to_host(SourceLocation) const override { return HostArray::scalar(1.0f); }
  std::string placement() const override { return "nowhere"; }
  void wait(SourceLocation where) const override {
    ++*waits;
    if (*waits == 100) throw Error(ErrorCode::kInternal, "[test] it failed", where);
  }
  int* waits;
};

struct WaitCounter final : Evaluator {
  void evaluate(std::span<const Value> values, SourceLocation) override {
    ++evaluations;
    for (const Value& value : values)
      value.node()->set_storage(value.index(), make_storage<WaitedFor>(&waits));
  }
  Tensor place(const Value& value, const Sharding&, SourceLocation) override {
    return Tensor(value);
  }
  std::shared_ptr<CompiledProgram> compile(Program, SourceLocation) override { return nullptr; }
  void wait() override { ++full_waits; }
  int evaluations = 0, waits = 0, full_waits = 0;
};

struct Pair {
  Tensor first;
  std::vector<Tensor> rest;
  MESHARD_FIELDS(first, rest)
};

struct Sync : testing::Test {
  Sync() {
    evaluator = {};
    install_evaluator([]() -> Evaluator& { return evaluator; });
  }
  ~Sync() override { install_evaluator(nullptr); }
  Tensor recorded() const { return test::plus(x, x); }
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  static inline WaitCounter evaluator;
};

TEST_F(Sync, ComputesOnceAndWaitsForEveryTensor) {
  sync(recorded());
  EXPECT_EQ(evaluator.waits, 1);
  sync(recorded(), Pair{recorded(), {recorded(), recorded()}});
  EXPECT_EQ(evaluator.waits, 5);
  EXPECT_EQ(evaluator.evaluations, 2) << "all values of one call in one program";
  sync({recorded(), recorded()});
  EXPECT_EQ(evaluator.waits, 7);
  std::map<std::string, std::optional<Tensor>> named{{"a", recorded()}, {"b", std::nullopt}};
  sync(named);
  sync(std::tuple(recorded(), 3), std::vector{recorded()}, std::array{recorded(), recorded()});
  EXPECT_EQ(evaluator.waits, 12);
  std::vector<Tensor> several{recorded(), x};
  sync(std::span<const Tensor>(several));
  EXPECT_EQ(evaluator.waits, 13);
  sync(several[0]);
  EXPECT_EQ(evaluator.waits, 14) << "computed before, and waited for again";
}

TEST_F(Sync, WithoutArgumentsWaitsForAllAndComputesNothing) {
  Tensor y = recorded();
  sync();
  EXPECT_EQ(evaluator.full_waits, 1);
  EXPECT_EQ(evaluator.evaluations, 0);
}

TEST_F(Sync, ComputeDoesNotWait) {
  compute({recorded()});
  EXPECT_EQ(evaluator.evaluations, 1);
  EXPECT_EQ(evaluator.waits, 0);
}

TEST_F(Sync, ErrorsHaveTheCallersLine) {
  evaluator.waits = 99;
  std::string line = cat("sync_test.cc:", __LINE__ + 1);
  EXPECT_TRUE(throws_error([&] { sync(recorded()); }, ErrorCode::kInternal, {line, "it failed"}));
  line = cat("sync_test.cc:", __LINE__ + 1);
  auto sync_of_nothing = [&] { sync(x, Tensor()); };
  EXPECT_TRUE(throws_error(sync_of_nothing, ErrorCode::kInvalidArgument, {line, "has no value"}));
}

}  // namespace
}  // namespace meshard
