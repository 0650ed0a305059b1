#include "meshard/stablehlo/export_tree.h"

#include <gmock/gmock.h>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/stablehlo/jax_export.h"
#include "tests/support/matchers.h"

namespace meshard::stablehlo {
namespace {

using testing::ElementsAre;
using Kind = ExportTree::Kind;

// (({"b": leaf, "w": [leaf, leaf]}, State(leaf, leaf), None), {"scale": leaf})
ExportTree sample() {
  ExportTree leaf;
  ExportTree list{.kind = Kind::kList, .children = {leaf, leaf}};
  ExportTree dict{.kind = Kind::kDict, .keys = {"b", "w"}, .children = {leaf, list}};
  ExportTree custom{.kind = Kind::kCustom, .children = {leaf, leaf}, .custom_name = "State"};
  ExportTree args{.kind = Kind::kTuple, .children = {dict, custom, {.kind = Kind::kNone}}};
  ExportTree named{.kind = Kind::kDict, .keys = {"scale"}, .children = {leaf}};
  return {.kind = Kind::kTuple, .children = {args, named}};
}

TEST(ExportTree, PathsOfLeaves) {
  EXPECT_THAT(sample().leaf_paths(), ElementsAre("[0][0]['b']", "[0][0]['w'][0]", "[0][0]['w'][1]",
                                                 "[0][1][0]", "[0][1][1]", "[1]['scale']"));
  EXPECT_THAT(ExportTree().leaf_paths(), ElementsAre(""));
  EXPECT_THAT(ExportTree::leaves(2).leaf_paths(), ElementsAre("[0]", "[1]"));
}

TEST(ExportTree, KeysAndFieldsMatchInAnyOrder) {
  std::vector<std::string> paths = {"[0][0].w[0]", "[0][0].w[1]", "[0][0].b",
                                    "[0][1].mu",   "[0][1].nu",   "[1][\"scale\"]"};
  EXPECT_THAT(sample().order_of(paths).value(), ElementsAre(2, 0, 1, 3, 4, 5));
}

TEST(ExportTree, WhatDiffersIsListed) {
  std::vector<std::string> paths = {"[0][0].w[0]", "[0][0].bias", "[0][1][0]", "[0][1][1]",
                                    "[1]['scale']"};
  EXPECT_TRUE(
      throws_error([&] { (void)sample().order_of(paths).value(); }, ErrorCode::kInvalidArgument,
                   {"missing: [0][0]['b'], [0][0]['w'][1]", "not in the program: [0][0].bias"}));
}

TEST(ExportTree, OfExports) {
  std::string bytes = read_whole_file(cat(MESHARD_GOLDEN, "/exported/run/by_name.bin")).value();
  JaxExport exported = read_jax_export(bytes).value();
  EXPECT_THAT(exported.argument_tree.leaf_paths(),
              ElementsAre("[0][0]", "[1]['bias'][0]", "[1]['bias'][1]", "[1]['scale']['s']",
                          "[1]['scale']['t']"));
  EXPECT_THAT(exported.result_tree.leaf_paths(), ElementsAre(""));
  EXPECT_THAT(exported.kept, ElementsAre(0, 2, 3));
  EXPECT_THAT(exported.argument_dtypes, ElementsAre("f32", "f32", "f32", "f32", "f32"));
  std::string old = read_whole_file(cat(MESHARD_GOLDEN, "/exported/run/ring.bin")).value();
  EXPECT_EQ(read_jax_export(old).value().calling_convention, 9);
}

}  // namespace
}  // namespace meshard::stablehlo
