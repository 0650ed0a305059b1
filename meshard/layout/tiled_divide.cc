#include "meshard/layout/tiled_divide.h"

#include "meshard/layout/unzip.h"
#include "meshard/layout/zipped_divide.h"

namespace meshard {

Result<Layout> tiled_divide(const Layout& a, const Tiler& b) {
  MESHARD_ASSIGN_OR_RETURN(Layout zipped, zipped_divide(a, b));
  return tiled_form(zipped);
}

}  // namespace meshard
