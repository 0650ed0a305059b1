// A member that is missing in MESHARD_FIELDS would keep the value of the first call.
#include "meshard/trace/jit.h"

using namespace meshard;

struct Model {
  Tensor w;
#ifdef MESHARD_REFUSED
  // refused: is missing in its MESHARD_FIELDS
  Tensor b;
#endif
  static constexpr int kLayers = 3;
  MESHARD_FIELDS(w)
};

Tensor call(const Model& model) {
  return jit([](const Model& m) { return m.w; })(model);
}
