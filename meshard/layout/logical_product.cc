#include "meshard/layout/logical_product.h"

#include "meshard/layout/by_mode.h"
#include "meshard/layout/complement.h"
#include "meshard/layout/composition.h"

namespace meshard {

Result<Layout> logical_product(const Layout& a, const Tiler& b) {
  if (b.kind() == Tiler::Kind::kNone) return a;
  if (b.kind() == Tiler::Kind::kTuple) return by_tiler("logical_product", a, b, logical_product);
  auto failure = [&](std::string_view why) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[logical_product] of ", a, " and ", b, ": ", why));
  };
  if (b.kind() == Tiler::Kind::kInteger)
    return failure(cat("an integer does not define how the copies are arranged; for ", b,
                       " consecutive copies, pass ", b.layout()));
  std::int64_t cotarget;
  if (__builtin_mul_overflow(a.size(), b.layout().cosize(), &cotarget))
    return failure("the values do not fit 64 bits");
  MESHARD_ASSIGN_OR_RETURN(Layout places, complement(a, cotarget));
  MESHARD_ASSIGN_OR_RETURN(Layout copies, composition(places, b.layout()));
  return concatenate(a, copies);
}

}  // namespace meshard
