#include "meshard/layout/tiled_product.h"

#include "meshard/layout/unzip.h"
#include "meshard/layout/zipped_product.h"

namespace meshard {

Result<Layout> tiled_product(const Layout& a, const Tiler& b) {
  MESHARD_ASSIGN_OR_RETURN(Layout zipped, zipped_product(a, b));
  return tiled_form(zipped);
}

}  // namespace meshard
