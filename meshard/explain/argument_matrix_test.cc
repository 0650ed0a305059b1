#include "meshard/explain/argument_matrix.h"

#include <gmock/gmock.h>

namespace meshard {
namespace {

ValuePlacement argument(const char* name, Shape shape, const Mesh& mesh,
                        const PartitionSpec& spec) {
  TensorType type{DType::f32, std::move(shape)};
  return {.name = name,
          .type = type,
          .padded = type,
          .sharding = Sharding(mesh, spec, static_cast<std::size_t>(type.rank()))};
}

// By hand: device 6 is at (0, 0), 4 at (0, 1), 5 at (1, 0), 7 at (1, 1).
TEST(ArgumentMatrix, HasTheDevicesOfASubmeshAndTheirParts) {
  Mesh mesh({{"x", 2}, {"y", 2}}, {6, 4, 5, 7});
  ProgramReport::Parts parts{.name = "main"};
  parts.mesh = mesh;
  parts.arguments = {argument("w", {4, 6}, mesh, P("x", "y")), argument("", {3}, mesh, P("y")),
                     argument("scale", {}, mesh, P()), argument("late", {1}, mesh, P("x"))};
  ProgramReport report(parts);
  EXPECT_EQ(argument_matrix(report),
            "device  0 w      1    2 scale  3 late\n"
            "6       0:2,0:3  0:2  all      0:1\n"
            "4       0:2,3:6  2:3  all      0:1\n"
            "5       2:4,0:3  0:2  all      empty\n"
            "7       2:4,3:6  2:3  all      empty\n");
  EXPECT_THAT(argument_matrix(report, 1), testing::EndsWith("0:1\nand 3 more devices\n"));
  EXPECT_THAT(report.to_string({.argument_matrix = true}),
              testing::HasSubstr("\n7       2:4,3:6  2:3  all      empty\n"));
  EXPECT_THAT(report.to_string(), testing::Not(testing::HasSubstr("2:4,3:6")));
}

// For a sharding over the same devices in another order, parts are looked up by device id.
TEST(ArgumentMatrix, GoesByDeviceAndNotByPosition) {
  Mesh mesh({{"x", 2}}, {1, 0}), other({{"z", 2}}, {0, 1});
  ProgramReport::Parts parts{.name = "main"};
  parts.mesh = mesh;
  parts.arguments = {argument("a", {2}, mesh, P("x")), argument("b", {2}, other, P("z"))};
  EXPECT_EQ(argument_matrix(ProgramReport(parts)),
            "device  0 a  1 b\n"
            "1       0:1  1:2\n"
            "0       1:2  0:1\n");
}

TEST(ArgumentMatrix, OfAProgramOnOneDevice) {
  ProgramReport::Parts parts{.name = "main"};
  TensorType type{DType::f32, {2}};
  parts.arguments = {{.name = "a", .type = type, .padded = type, .sharding = std::nullopt}};
  EXPECT_EQ(argument_matrix(ProgramReport(parts)), "device  0 a\nsingle  all\n");
}

}  // namespace
}  // namespace meshard
