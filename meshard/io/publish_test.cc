#include "meshard/io/publish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/leaf.h"
#include "meshard/io/internal/published.h"
#include "meshard/io/io_testutil.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"
#include "meshard/trace/jit.h"

namespace meshard::io {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using Tensors = std::map<std::string, Tensor>;

const std::string kSecret = "0123456789abcdef";
const PublishOptions kOptions{.secret = kSecret};

Mesh grid() { return Mesh({{"a", 2}, {"b", 2}}); }
Mesh line() { return Mesh({{"x", 4}}); }

Tensor marked(std::vector<float> values, Shape shape, const Mesh& mesh, PartitionSpec spec) {
  return mark_sharding(from_host(std::move(values), std::move(shape)), mesh, std::move(spec));
}

class PublishTest : public OnPlugin {
 protected:
  Publisher publisher_ = Publisher::open("127.0.0.1:0", kOptions).value();
  ReceiveOptions options_{.secret = kSecret, .limit = std::chrono::seconds(10)};

  template <class T>
  Result<Received<T>> receive(T like) {
    return io::receive(publisher_.address(), std::move(like), options_);
  }
};

TEST_F(PublishTest, ValuesComeOntoOtherLayouts) {
  const Tensors published = {{"both", marked(counted(48), {8, 6}, grid(), P("a", "b"))},
                             {"columns", marked(counted(30, 100), {3, 10}, line(), P(none, "x"))},
                             {"uneven", marked(counted(21, 200), {7, 3}, line(), P("x"))},
                             {"copies", marked(counted(5, 300), {5}, grid(), P())},
                             {"host", from_host(counted(4, 400), {2, 2})},
                             {"none", from_host(std::vector<float>{}, {0, 3})}};
  ASSERT_EQ(publisher_.publish(published).value(), 0);
  Tensors like;
  const std::vector<PartitionSpec> specs = {P("x"), P(none, "x"), P()};
  for (std::size_t turn = 0; turn < specs.size(); ++turn) {
    for (const auto& [name, tensor] : published) {
      const bool fits = static_cast<std::size_t>(tensor.rank()) >= specs[turn].size();
      like[name] = abstract_tensor(
          tensor.type(),
          Sharding(line(), fits ? specs[turn] : P("x"), static_cast<std::size_t>(tensor.rank())));
    }
    Received<Tensors> got = receive(like).value();
    EXPECT_EQ(got.version, 0);
    for (const auto& [name, tensor] : published) {
      EXPECT_EQ(got.value.at(name).to_vector<float>(), tensor.to_vector<float>()) << name;
      EXPECT_EQ(got.value.at(name).sharding(), like.at(name).sharding()) << name;
    }
  }
}

TEST_F(PublishTest, LargePartsGoInSeveralMessages) {
  // Rows of 300 kB, and blocks of 60 kB of them, in other parts than they are needed.
  const Tensor wide = marked(counted(16 * 75000), {16, 75000}, grid(), P("a", "b"));
  const Tensor thin = marked(counted(300000), {300000}, line(), P("x"));
  ASSERT_TRUE(publisher_.publish(Tensors{{"wide", wide}, {"thin", thin}}).ok());
  const Tensors like = {
      {"wide", abstract_tensor(wide.type(), Sharding(line(), P(none, "x"), 2))},
      {"thin", abstract_tensor(thin.type(), Sharding(grid(), P(axes("b", "a")), 1))}};
  Received<Tensors> got = receive(like).value();
  EXPECT_TRUE(got.value.at("wide").to_vector<float>() == counted(16 * 75000));
  EXPECT_TRUE(got.value.at("thin").to_vector<float>() == counted(300000));
}

struct Numbers {
  Tensor w;
  int step = 0;
  MESHARD_FIELDS(w, step)
};

TEST_F(PublishTest, NumbersAndDonatedTensors) {
  Tensor w = marked(counted(8), {8}, line(), P("x"));
  ASSERT_TRUE(publisher_.publish(Numbers{w, 7}).ok());
  auto step = jit([](const Tensor& x) { return x + 1; }, {.donate = {0}});
  (void)step(w);
  Received<Numbers> got = receive(Numbers{abstract_tensor({8}, DType::f32), 0}).value();
  EXPECT_EQ(got.value.step, 7);
  EXPECT_EQ(got.value.w.to_vector<float>(), counted(8));
  EXPECT_EQ(publisher_.publish(Numbers{w, 8}).error().code(), ErrorCode::kFailedPrecondition);
  EXPECT_EQ(receive(Numbers{abstract_tensor({8}, DType::f32), 0}).value().value.step, 7);
}

TEST_F(PublishTest, AVersionIsWholeWhateverIsPublishedMeanwhile) {
  auto tensors = [](float first) {
    return Tensors{{"v", marked(counted(8, first), {8}, line(), P("x"))},
                   {"w", marked(counted(8, first), {8}, line(), P("x"))}};
  };
  ASSERT_TRUE(publisher_.publish(tensors(1)).ok());
  internal::Receiving first = internal::Receiving::open(publisher_.address(), options_, {}).value();
  EXPECT_EQ(first.weights().tensor("v").value().to_vector<float>(), counted(8, 1));
  EXPECT_EQ(publisher_.num_receivers(), 1);
  for (float each : {100.f, 200.f}) ASSERT_TRUE(publisher_.publish(tensors(each)).ok());
  EXPECT_EQ(first.weights().tensor("w").value().to_vector<float>(), counted(8, 1));
  EXPECT_EQ(first.version(), 0);
  EXPECT_EQ(receive(tensors(0)).value().version, 2);
  // One that has ended its work is forgotten, also if it never said so.
  { internal::Receiving gone = std::move(first); }
  while (publisher_.num_receivers() > 0) std::this_thread::yield();
}

TEST_F(PublishTest, VersionsGrow) {
  const Tensors one = {{"w", from_host(counted(2), {2})}};
  EXPECT_EQ(publisher_.publish(one, 5).value(), 5);
  EXPECT_EQ(publisher_.publish(one).value(), 6);
  Error error = publisher_.publish(one, 6).error();
  EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(error.message(), HasSubstr("version 6 must be greater than the last"));
  EXPECT_EQ(receive(one).value().version, 6);
}

TEST_F(PublishTest, ReceiversWaitForNewerVersions) {
  const Tensors one = {{"w", from_host(counted(2), {2})}};
  ASSERT_TRUE(publisher_.publish(one).ok());
  options_.newer_than = 0;
  options_.limit = milliseconds(50);
  Error error = receive(one).error();
  EXPECT_EQ(error.code(), ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(error.message(), HasSubstr("no version newer than 0 was published at 127.0.0.1:"));
  options_.limit = std::chrono::seconds(30);
  std::int64_t version = -1;
  {
    std::jthread receiver([&] { version = receive(one).value().version; });
    std::this_thread::sleep_for(milliseconds(20));
    ASSERT_TRUE(publisher_.publish(one).ok());
  }
  EXPECT_EQ(version, 1);
}

TEST_F(PublishTest, DifferencesAreListed) {
  ASSERT_TRUE(publisher_
                  .publish(Tensors{{"a", from_host(counted(2), {2})},
                                   {"same", from_host(counted(2), {2})},
                                   {"weight", from_host(counted(2), {2})}})
                  .ok());
  Error error = receive(Tensors{{"a", abstract_tensor({3}, DType::f32)},
                                {"same", abstract_tensor({2}, DType::f32)},
                                {"weights", abstract_tensor({2}, DType::f32)}})
                    .error();
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  for (const char* part : {"version 0 at 127.0.0.1:", "the publisher lacks \"weights\"",
                           "the publisher has \"weight\"",
                           "\"a\" is f32[2] in the publisher, but the destination is f32[3]"})
    EXPECT_THAT(error.message(), HasSubstr(part));
  options_.strict = false;
  EXPECT_TRUE(receive(Tensors{{"same", abstract_tensor({2}, DType::f32)}}).ok());
}

TEST_F(PublishTest, SecretsAreNeeded) {
  const Tensors one = {{"w", from_host(counted(2), {2})}};
  ASSERT_TRUE(publisher_.publish(one).ok());
  options_.secret = "another secret..";
  EXPECT_EQ(receive(one).error().code(), ErrorCode::kUnauthenticated);
  EXPECT_EQ(Publisher::open("127.0.0.1:0", {.secret = "short"}).error().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(Publisher::open(publisher_.address(), kOptions).error().code(),
            ErrorCode::kAlreadyExists);
}

TEST(PublisherEnd, IsAnErrorForReceivers) {
  const Tensors one = {{"w", from_host(counted(2), {2})}};
  std::optional<Publisher> publisher = Publisher::open("127.0.0.1:0", kOptions).value();
  const std::string address = publisher->address();
  ASSERT_TRUE(publisher->publish(one).ok());
  ReceiveOptions options{.secret = kSecret, .limit = std::chrono::seconds(30)};
  internal::Receiving receiving = internal::Receiving::open(address, options, {}).value();
  options.newer_than = 0;
  {
    std::jthread end([&] {
      std::this_thread::sleep_for(milliseconds(20));
      publisher.reset();
    });
    EXPECT_EQ(receive(address, one, options).error().code(), ErrorCode::kUnavailable);
  }
  EXPECT_FALSE(receiving.weights().tensor("w").ok());
}

TEST(MessageBoxes, CoverABoxInOrder) {
  for (const Box& box : {Box{{0, 5}, {2, 4}}, Box{{3, 1003}, {0, 10}, {5, 77}}, Box{{1, 900001}},
                         Box{{0, 3}, {0, 1}, {0, 300000}}, Box{}}) {
    const Box shape_box = box;
    std::vector<std::int64_t> sizes;
    for (const DimensionSlice& slice : box) sizes.push_back(slice.stop);
    std::vector<std::int64_t> covered;
    for (const Box& each : internal::message_boxes(box, 4)) {
      EXPECT_LE(box_shape(each).size() * 4, 1 << 18);
      for (std::int64_t number : numbers_in(each, sizes)) covered.push_back(number);
    }
    EXPECT_TRUE(covered == numbers_in(shape_box, sizes)) << to_string(box);
  }
}

}  // namespace
}  // namespace meshard::io
