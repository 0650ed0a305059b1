// Reshards of compiled programs are tested in explain_for_test.cc.
#include "meshard/explain/collectives/reshards.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

// The warning of xla/service/spmd/spmd_partitioner.cc.
constexpr std::string_view kWarning =
    "W0000 00:00:1 spmd_partitioner.cc:652] [SPMD] Involuntary full rematerialization. The "
    "compiler was not able to go from sharding {devices=[1,2,4]<=[8] last_tile_dim_replicate} to "
    "{devices=[8,1]<=[8]} without doing a full rematerialization of the tensor for HLO operation: "
    "%add.3 = f32[16,32]{1,0} add(f32[16,32]{1,0} %x, f32[16,32]{1,0} %y), "
    "sharding={devices=[1,2,4]<=[8] last_tile_dim_replicate}, "
    "metadata={op_name=\"jit(step)/add\"}. You probably want to enrich the sharding annotations to "
    "prevent this from happening.\n";

TEST(Rematerializations, AreReadFromTheLog) {
  std::string log = "I0000 something else\n" + std::string(kWarning) + std::string(kWarning);
  std::vector<Reshard> found = rematerializations_in_log(log);
  ASSERT_EQ(found.size(), 2u);
  for (const Reshard& one : found) {
    EXPECT_EQ(one.kind, ReshardKind::kFullRematerialize);
    EXPECT_EQ(one.from, "{devices=[1,2,4]<=[8] last_tile_dim_replicate}");
    EXPECT_EQ(one.to, "{devices=[8,1]<=[8]}");
    EXPECT_EQ(one.type, "f32[16,32]");
    EXPECT_EQ(one.instruction, "add.3");
    ASSERT_EQ(one.origin.places.size(), 1u);
    EXPECT_EQ(one.origin.places[0].op, "jit(step)/add");
    EXPECT_EQ(one.who, CollectiveCause::kInserted);
  }
}

TEST(Rematerializations, ATruncatedWarningIsStillOne) {
  for (std::size_t size = 0; size <= kWarning.size(); ++size) {
    std::size_t expected =
        kWarning.substr(0, size).find("full rematerialization") != std::string_view::npos;
    EXPECT_EQ(rematerializations_in_log(kWarning.substr(0, size)).size(), expected) << size;
  }
}

}  // namespace
}  // namespace meshard
