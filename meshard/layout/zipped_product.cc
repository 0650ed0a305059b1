#include "meshard/layout/zipped_product.h"

#include "meshard/layout/logical_product.h"
#include "meshard/layout/unzip.h"

namespace meshard {

Result<Layout> zipped_product(const Layout& a, const Tiler& b) {
  return unzip("zipped_product", a, b, logical_product);
}

}  // namespace meshard
