#include "meshard/runtime/counters.h"

namespace meshard {

internal::AtomicCounters& internal::counters() {
  static AtomicCounters all;
  return all;
}

RuntimeCounters runtime_counters() {
  auto& c = internal::counters();
  return {.buffers_sent = c.buffers_sent,
          .bytes_sent = c.bytes_sent,
          .bytes_aliased = c.bytes_aliased,
          .buffers_read = c.buffers_read,
          .bytes_read = c.bytes_read,
          .buffers_moved = c.buffers_moved,
          .bytes_moved = c.bytes_moved,
          .compiles = c.compiles,
          .retargets = c.retargets,
          .cache_hits = c.cache_hits,
          .launches = c.launches,
          .nodes_run = c.nodes_run};
}

}  // namespace meshard
