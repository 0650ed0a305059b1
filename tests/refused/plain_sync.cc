// In a file that includes <unistd.h>, sync() without arguments must not call the system function
// that flushes file buffers.
#include <unistd.h>

#include "meshard/graph/sync.h"

using namespace meshard;

void wait_for_everything() {
#ifdef MESHARD_REFUSED
  // refused: ambiguous
  sync();
#else
  meshard::sync();
#endif
}

void wait_for_one(const Tensor& x) { sync(x); }

void wait_in_a_scope_with_our_name() {
  using meshard::sync;
  sync();
}
