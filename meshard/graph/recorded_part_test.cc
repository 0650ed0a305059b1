#include "meshard/graph/recorded_part.h"

#include <gmock/gmock.h>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"
#include "meshard/graph/record.h"
#include "meshard/graph/zero_evaluator_testutil.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct RecordedPartTest : testing::Test {
  RecordedPart all() const {
    return recorded_part(internal::record_log, begin, internal::record_log.count());
  }
  std::vector<std::uint64_t> numbers(const RecordedPart& part) const {
    std::vector<std::uint64_t> found;
    for (const auto& [number, value] : part.nodes) found.push_back(number - begin);
    return found;
  }
  std::uint64_t begin = internal::record_log.count();
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
};

TEST_F(RecordedPartTest, WhatHandlesNeed) {
  Tensor a = test::plus(x, x);
  Tensor b = test::plus(a, a);
  Tensor c = test::plus(b, a);
  Value kept = c.value();
  a = Tensor();
  b = c = Tensor();
  RecordedPart part = all();
  EXPECT_THAT(numbers(part), ElementsAre(0, 1, 2));
  EXPECT_THAT(part.wanted, ElementsAre(kept));
}

TEST_F(RecordedPartTest, LaterNodesAreUsersFromOutside) {
  Tensor a = test::plus(x, x);
  Tensor b = test::plus(a, x);
  Value first = a.value();
  a = Tensor();
  RecordedPart part = recorded_part(internal::record_log, begin, begin + 1);
  EXPECT_THAT(numbers(part), ElementsAre(0));
  EXPECT_THAT(part.wanted, ElementsAre(first));
  part = {};
  first = Value();
  EXPECT_THAT(all().wanted, ElementsAre(b.value()));
}

TEST_F(RecordedPartTest, WithoutWhatIsComputed) {
  Tensor a = test::plus(x, x);
  Tensor b = test::plus(a, x);
  Tensor c = test::plus(b, x);
  a = Tensor();
  b.value().node()->set_storage(0, make_storage<HostStorage>(HostArray::zeros(b.type())));
  // `a` is only an operand of a computed node, which has not forgotten it yet.
  EXPECT_THAT(numbers(all()), ElementsAre(2));
}

TEST_F(RecordedPartTest, LocalValuesAreNotWanted) {
  Tensor inside = test::local(test::plus(x, x), {"x"}, {"x"});
  EXPECT_THAT(all().wanted, IsEmpty());
}

TEST_F(RecordedPartTest, WithoutWhatCannotBeComputed) {
  Tensor placeholder = make_parameter({DType::f32, {2}}, std::nullopt, {});
  Tensor a = test::plus(placeholder, x);
  Tensor b = test::plus(a, x);
  Tensor without_elements = test::plus(abstract_tensor({2}, DType::f32), x);
  EXPECT_THAT(all().nodes, IsEmpty());
  Tensor c = test::plus(x, x);
  EXPECT_THAT(all().wanted, ElementsAre(c.value()));
}

}  // namespace
}  // namespace meshard
