#include "meshard/layout/zipped_divide.h"

#include "meshard/layout/logical_divide.h"
#include "meshard/layout/unzip.h"

namespace meshard {

Result<Layout> zipped_divide(const Layout& a, const Tiler& b) {
  return unzip("zipped_divide", a, b, logical_divide);
}

}  // namespace meshard
