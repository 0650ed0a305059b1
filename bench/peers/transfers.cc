// Transfers of 256 MB: to the devices, back to the host, and from rows to columns.
#include <string>
#include <type_traits>

#include "bench/large_matrix.h"
#include "bench/on_devices.h"
#include "bench/peers/contest.h"
#include "bench/timing.h"

namespace meshard::bench {
namespace {

// The seconds of one transfer; its result is destroyed after them.
template <class Transfer>
Side timed(Transfer&& transfer) {
  return [transfer] {
    double begin = now();
    auto done = transfer();
    if constexpr (std::is_same_v<decltype(done), Tensor>) wait_for(done);
    return (now() - begin) / 1e6;
  };
}

}  // namespace

void transfer_contest(Contest& contest) {
  if (!contest.has("jax")) return;
  HostArray array = large_matrix();
  const Mesh mesh({{"x", 8}});
  const PartitionSpec by_rows = P("x", none), by_columns = P(none, "x");
  const Tensor rows = mark_sharding(from_host(array), mesh, by_rows);
  wait_for(rows);
  const auto columns = jit([&](Tensor x) { return mark_sharding(x, mesh, by_columns); });
  std::unique_ptr<Peer> jax = contest.start("jax");
  auto add = [&](const char* kind, const char* name, const char* work, const Side& ours) {
    PeerWork theirs(*jax, "transfer", {{"side", kSide}, {"kind", kind}});
    std::vector<double> seconds = fastest_in_turns(9, {ours, [&] { return theirs.run(); }});
    add_figures(contest, "jax",
                {.name = name,
                 .work = work,
                 .unit = "GB/s",
                 .ours = gigabytes_per_second(seconds[0] * 1e6),
                 .theirs = gigabytes_per_second(seconds[1] * 1e6),
                 .higher_is_better = true});
  };
  add("place", "transfer.place", "256 MB to 8 devices, split by rows",
      timed([&] { return mark_sharding(from_host(array), mesh, by_rows); }));
  add("gather", "transfer.gather", "256 MB split by rows to the host",
      timed([&] { return rows.to_host(); }));
  add("reshard", "transfer.columns", "256 MB on 8 devices, rows to columns",
      timed([&] { return transfer(rows, mesh, by_columns); }));
  add("reshard_jit", "transfer.columns.jit", "the same in a jitted function",
      timed([&] { return columns(rows); }));
}

}  // namespace meshard::bench
