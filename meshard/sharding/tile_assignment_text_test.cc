#include <gtest/gtest.h>

#include "meshard/sharding/tile_assignment.h"

namespace meshard {
namespace {

TEST(TileAssignmentText, ParsesWhatItPrints) {
  for (const char* text :
       {"{replicated}", "{manual}", "{unknown}", "{unreduced}", "{maximal device=3}",
        "{devices=[2,2]0,2,1,3}", "{devices=[2,2]<=[2,2]T(1,0)}", "{devices=[4,2]<=[8]}",
        "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}",
        "{devices=[2,2,2]<=[8] last_tile_dims={manual, replicated}}",
        "{devices=[2,2]3,1,0,2 last_tile_dim_replicate}"})
    EXPECT_EQ(TileAssignment::parse(text).value().to_string(), text);
}

TEST(TileAssignmentText, Refusals) {
  for (const char* text :
       {"", "{}", "{tiled}", "{maximal}", "{devices=[2,2]0,1,2}", "{devices=[2]0,0}",
        "{devices=[2]0,-1}", "{devices=[2]<=[3]}", "{devices=[4]<=[2,2]T(0,0)}",
        "{devices=[4]<=[2,2]T(0)}", "{devices=[0]<=[1]}", "{devices=[]<=[1]}", "{replicated} x",
        "{devices=[2]<=[2] last_tile_dims={replicated, manual}}"})
    EXPECT_FALSE(TileAssignment::parse(text).ok()) << text;
}

}  // namespace
}  // namespace meshard
