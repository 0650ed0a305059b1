#include <gtest/gtest.h>

#include "meshard/hlo/module.h"
#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/wire.h"

namespace meshard {
namespace {

using pjrt::interface_bytes;
using pjrt::WireWriter;
using Numbers = std::vector<std::int64_t>;

WireWriter wire_shape(const Numbers& dimensions) {
  WireWriter shape;
  shape.add_varint(2, 11);  // f32
  shape.add_packed(3, dimensions);
  return shape;
}

// OpSharding {type 1, tile dimensions 3, devices 4}.
WireWriter tiled(const Numbers& tiles, const Numbers& devices) {
  WireWriter sharding;
  sharding.add_varint(1, 3);  // OTHER
  sharding.add_packed(3, tiles);
  sharding.add_packed(4, devices);
  return sharding;
}

// A module with two parameters, and a computation of about `size` bytes.
std::string module_with(std::size_t size) {
  WireWriter computation, shape, module, with_config;
  computation.add_bytes(1, std::string(size, 'c'));
  computation.add_varint(5, 7);
  shape.add_message(1, wire_shape({4, 8}));
  shape.add_message(1, wire_shape({2}));
  shape.add_message(2, wire_shape({4}));
  module.add_bytes(1, "step");
  module.add_message(3, computation);
  module.add_message(4, shape);
  module.add_varint(6, 7);
  module.add_message(12, tiled({2}, {0, 1}));
  module.add_message(14, tiled({2, 1}, {1, 0}));
  module.add_message(14, tiled({2}, {0, 1}));
  with_config.add_message(1, module);
  with_config.add_bytes(2, "the configuration");
  return with_config.take();
}

void check(const HloInterface& interface) {
  ASSERT_EQ(interface.parameters.size(), 2u);
  EXPECT_EQ(interface.parameters[0].dimensions, (Numbers{4, 8}));
  EXPECT_EQ(interface.parameters[1].dimensions, (Numbers{2}));
  EXPECT_EQ(interface.result.dimensions, (Numbers{4}));
  ASSERT_TRUE(interface.output_sharding);
  EXPECT_EQ(interface.output_sharding->to_string(), "{devices=[2]0,1}");
  ASSERT_EQ(interface.parameter_shardings.size(), 2u);
  EXPECT_EQ(interface.parameter_shardings[0].to_string(), "{devices=[2,1]1,0}");
  EXPECT_EQ(interface.parameter_shardings[1].to_string(), "{devices=[2]0,1}");
}

TEST(HloInterface, IsReadFromAModule) {
  check(HloInterface::from_bytes(module_with(100)).value());
  check(HloModule::from_bytes(module_with(100)).value());
}

TEST(HloInterface, ItsBytesAreSmall) {
  std::string bytes = interface_bytes(module_with(100'000));
  EXPECT_LT(bytes.size(), 200u);
  check(HloInterface::from_bytes(bytes).value());
  EXPECT_EQ(interface_bytes(bytes), bytes);
}

TEST(HloInterface, DamagedBytesAreAnError) {
  std::string bytes = interface_bytes(module_with(10));
  Result<HloInterface> damaged =
      HloInterface::from_bytes(std::string_view(bytes).substr(0, bytes.size() - 3));
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().code(), ErrorCode::kDataLoss);
  EXPECT_TRUE(HloInterface::from_bytes("").value().parameters.empty());
}

}  // namespace
}  // namespace meshard
