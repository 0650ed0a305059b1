#include "meshard/layout/orthogonal.h"

#include "meshard/layout/coalesce.h"
#include "meshard/layout/sorted_modes.h"

namespace meshard {

bool is_orthogonal(const Layout& layout) {
  InlineVector<Mode, 6> modes = sorted_modes(coalesce(layout));
  if (modes.size() < 2) return true;
  for (Mode& mode : modes) {
    if (mode.stride == 0) return false;
    if (mode.stride < 0 && __builtin_sub_overflow(0, mode.stride, &mode.stride)) return false;
  }
  sort_modes(modes);
  for (std::size_t i = 1; i < modes.size(); ++i) {
    std::int64_t reach;
    if (__builtin_mul_overflow(modes[i - 1].stride, modes[i - 1].size, &reach) ||
        modes[i].stride % reach != 0)
      return false;
  }
  return true;
}

}  // namespace meshard
