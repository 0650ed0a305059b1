// What explain says of factorizations over a grid of devices.
#include <gmock/gmock.h>

#include "meshard/explain/explain.h"
#include "meshard/linalg/distributed.h"
#include "tests/support/devices.h"

namespace meshard {
namespace {

using DistributedLinalg = OnDevices;

// The bytes of docs/concepts/linalg.md.
TEST_F(DistributedLinalg, CholeskySendsWhatItsPageSays) {
  Mesh mesh({{"rows", 2}, {"columns", 4}});
  linalg::distributed::MatrixGrid grid(mesh, "rows", "columns");
  const std::int64_t n = 256;  // four panels of 64 columns
  Tensor a = mark_sharding(eye(n) * 4, mesh, P("rows", "columns"));
  auto program = jit([&](const Tensor& x) { return linalg::distributed::cholesky(x, grid); });
  Tensor l = program(a);
  EXPECT_TRUE(l.sharding()->is_equivalent_to(Sharding(mesh, P("rows", "columns")), 2));
  Tensor host = from_host(l.to_host());
  EXPECT_EQ(sum(abs(host - eye(n) * 2)).item<float>(), 0);
  const ProgramReport report = explain(program);
  ASSERT_FALSE(report.collectives().empty());
  double bytes = 0;
  for (const auto& each : report.collectives()) {
    EXPECT_THAT(each.to_string(), testing::HasSubstr("distributed_linalg_test.cc"));
    bytes += static_cast<double>(each.total_bytes());
  }
  const double all = 4.0 * n * n, panel = 64;
  const double stated = all / 2 * (1.0 / 2 + 1.0 / 4) + all / 16 + 4 * n * panel + 4 * all / 8;
  EXPECT_LT(bytes, 1.2 * stated);
  EXPECT_GT(bytes, 0.5 * stated);
}

}  // namespace
}  // namespace meshard
