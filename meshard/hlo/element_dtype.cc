#include "meshard/hlo/element_dtype.h"

#include <algorithm>
#include <array>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

using ElementTypes = std::array<pjrt::ElementType, kDTypeCount>;

const ElementTypes& element_types() {
  static const ElementTypes all = [] {
    ElementTypes types{};
    for (std::size_t i = 0; i < types.size(); ++i)
      types[i] = pjrt::parse_element_type(stablehlo_name(static_cast<DType>(i))).value();
    return types;
  }();
  return all;
}

}  // namespace

pjrt::ElementType element_type_of(DType dtype) {
  return element_types()[static_cast<std::size_t>(dtype)];
}

Result<DType> dtype_of_element(pjrt::ElementType element) {
  const ElementTypes& all = element_types();
  auto found = std::find(all.begin(), all.end(), element);
  if (found != all.end()) return static_cast<DType>(found - all.begin());
  return Error(ErrorCode::kUnimplemented,
               cat("[runtime] meshard has no dtype for the plugin's element type number ",
                   static_cast<int>(element)));
}

}  // namespace meshard
