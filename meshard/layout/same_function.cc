#include "meshard/layout/same_function.h"

#include "meshard/layout/coalesce.h"

namespace meshard {

bool same_function(const Layout& a, const Layout& b) {
  return a.size() == b.size() && coalesce(a) == coalesce(b);
}

}  // namespace meshard
