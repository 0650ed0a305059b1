#include "meshard/lowering/internal/scattered_updates.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/scatter.h"

namespace meshard {
namespace {

const Mesh kFour({{"x", 2}, {"y", 2}});

Tensor scattered_data(Shape shape, DType dtype = DType::f32) {
  return from_host(HostArray::zeros({dtype, std::move(shape)}));
}

// Adds rows of 3 to rows of an operand f32[9, 3].
Tensor rows_added(std::int64_t rows) {
  return scatter_add(scattered_data({9, 3}), scattered_data({rows, 1}, DType::i32),
                     scattered_data({rows, 3}),
                     {.update_window_dims = {1},
                      .inserted_window_dims = {0},
                      .scatter_dims_to_operand_dims = {0},
                      .index_vector_dim = 1});
}

TEST(ScatteredUpdates, StayWholeWhereTheirNumberIsNotDivided) {
  for (std::int64_t rows : {1, 2, 6}) {  // 2 is divisible by one axis, not by every choice
    Tensor y = rows_added(rows);
    const Node& node = *y.value().node();
    EXPECT_EQ(even_for_scatter(node, 1, kFour), Sharding(kFour, P(none, unconstrained))) << rows;
    EXPECT_EQ(even_for_scatter(node, 2, kFour), Sharding(kFour, P(none, unconstrained))) << rows;
    EXPECT_FALSE(even_for_scatter(node, 0, kFour)) << "the operand is padded where nothing goes";
  }
}

TEST(ScatteredUpdates, AreFreeWhereEveryChoiceOfAxesIsEven) {
  Tensor y = rows_added(8);
  EXPECT_FALSE(even_for_scatter(*y.value().node(), 1, kFour));
  EXPECT_FALSE(even_for_scatter(*y.value().node(), 2, kFour));
  Tensor sum = add(scattered_data({3}), 1);
  EXPECT_FALSE(even_for_scatter(*sum.value().node(), 1, kFour)) << "another op";
}

}  // namespace
}  // namespace meshard
