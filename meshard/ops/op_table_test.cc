#include "meshard/ops/op_table.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

TEST(OpTable, IsAlphabeticalAndComplete) {
  std::string_view before;
  for (const OpDef* op : all_ops()) {
    EXPECT_LT(before, op->name);
    before = op->name;
    EXPECT_EQ(find_op(op->name), op);
    EXPECT_FALSE(op->doc.empty()) << op->name;
    EXPECT_FALSE(op->example.empty()) << op->name;
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_NE(op->sharding_rule, nullptr) << op->name;
    EXPECT_NE(op->emit, nullptr) << op->name;
    EXPECT_NE(op->samples, nullptr) << op->name;
  }
  EXPECT_EQ(find_op("no_such_op"), nullptr);
}

}  // namespace
}  // namespace meshard
