// A jitted function must return a result, because it has no other outputs.
#include "meshard/trace/jit.h"

using namespace meshard;

void call(const Tensor& x) {
#ifdef MESHARD_REFUSED
  // refused: the function given to jit returns nothing
  jit([](Tensor) {})(x);
#else
  (void)jit([](Tensor y) { return y; })(x);
#endif
}
