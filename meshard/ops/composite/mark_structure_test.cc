#include "meshard/ops/composite/mark_structure.h"

#include <gtest/gtest.h>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/op_testutil.h"
#include "meshard/sharding/sharding_spec.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

const Mesh& square_mesh() {
  static const Mesh mesh({{"x", 2}, {"y", 2}});
  return mesh;
}
Tensor recorded_input(Shape shape) { return add(input(std::move(shape)), 1); }

struct Batch {
  Tensor image;
  std::vector<Tensor> labels;
  int number = 0;
  MESHARD_FIELDS(image, labels, number)
};
Batch make_batch() {
  return {recorded_input({4, 6}), {recorded_input({4}), recorded_input({4, 2})}, 7};
}

TEST(MarkStructure, ABatchByName) {
  std::map<std::string, Tensor> batch{{"image", recorded_input({4, 6})},
                                      {"label", recorded_input({4})}};
  auto marked = mark_sharding(batch, square_mesh(), {{"image", P("x", "y")}, {"label", P("x")}});
  EXPECT_EQ(marked["image"].sharding(), Sharding(square_mesh(), P("x", "y")));
  EXPECT_EQ(marked["label"].sharding(), Sharding(square_mesh(), P("x")));
  EXPECT_FALSE(batch["image"].sharding());
}

TEST(MarkStructure, AStructByItsFieldsAndOneSpecForAllBelow) {
  Batch marked =
      mark_sharding(make_batch(), square_mesh(), {{"image", P(none, "y")}, {"labels", P("x")}});
  EXPECT_EQ(marked.image.sharding(), Sharding(square_mesh(), P(none, "y")));
  EXPECT_EQ(marked.labels[0].sharding(), Sharding(square_mesh(), P("x")));
  EXPECT_EQ(marked.labels[1].sharding(), Sharding(square_mesh(), P("x", none)));
  EXPECT_EQ(marked.number, 7);
  Batch all = mark_sharding(make_batch(), square_mesh(), P("y"));
  EXPECT_EQ(all.labels[1].sharding(), Sharding(square_mesh(), P("y", none)));
}

TEST(MarkStructure, SequencesAndTuples) {
  std::vector<Tensor> list{recorded_input({4}), recorded_input({2, 4})};
  auto marked =
      mark_sharding(list, square_mesh(), std::vector<PartitionSpec>{P("x"), P(none, "y")});
  EXPECT_EQ(marked[1].sharding(), Sharding(square_mesh(), P(none, "y")));
  std::pair<Tensor, Batch> nested{recorded_input({4}), make_batch()};
  auto both = mark_sharding(nested, square_mesh(),
                            std::pair{P("y"), NamedSpecs{{"image", P("x")}, {"labels", P()}}});
  EXPECT_EQ(both.first.sharding(), Sharding(square_mesh(), P("y")));
  EXPECT_EQ(both.second.image.sharding(), Sharding(square_mesh(), P("x", none)));
}

TEST(MarkStructure, SpecsOfALoaderBringTheirMesh) {
  ShardingSpec spec = ShardingSpec::minibatch(square_mesh(), P(axes("x", "y")));
  Batch marked = mark_sharding(make_batch(), spec);
  EXPECT_EQ(marked.labels[0].sharding(), Sharding(square_mesh(), P({"x", "y"})));
  std::map<std::string, Tensor> batch{{"a", recorded_input({4})}};
  EXPECT_EQ(mark_sharding(batch, {{"a", spec}})["a"].sharding(),
            Sharding(square_mesh(), P({"x", "y"})));
}

TEST(MarkStructure, ErrorsNameThePath) {
  auto refused = [](auto&& call, std::vector<std::string> what) {
    what.push_back("mark_structure_test.cc:");
    return throws_error(call, ErrorCode::kInvalidArgument, what);
  };
  EXPECT_TRUE(refused(
      [] {
        mark_sharding(make_batch(), square_mesh(),
                      {{"image", P("x", none, none)}, {"labels", P()}});
      },
      {"3 dimensions", "while marking .image"}));
  EXPECT_TRUE(refused(
      [] {
        mark_sharding(make_batch(), square_mesh(), {{"image", P()}});
      },
      {"no spec for .labels"}));
  EXPECT_TRUE(refused(
      [] {
        mark_sharding(make_batch(), square_mesh(),
                      {{"image", P()}, {"labels", P()}, {"masks", P()}});
      },
      {".masks", "no such member"}));
  std::map<std::string, Tensor> batch{{"a", recorded_input({4})}};
  EXPECT_TRUE(refused(
      [&] {
        mark_sharding(batch, square_mesh(), {{"b", P()}});
      },
      {"no spec for [\"a\"]"}));
  EXPECT_TRUE(refused(
      [&] {
        mark_sharding(batch, square_mesh(), {{"a", P()}, {"b", P()}});
      },
      {"[\"b\"]", "no such member"}));
  EXPECT_TRUE(refused(
      [] {
        mark_sharding(std::vector<Tensor>{recorded_input({4})}, square_mesh(),
                      std::vector<PartitionSpec>{P(), P()});
      },
      {"has 1 elements, but the number of specs is 2"}));
}

}  // namespace
}  // namespace meshard
