#include "tools/reference/declaration.h"

namespace meshard::tool {

std::span<const Declaration> all_declarations() {
  static constexpr Declaration kDeclarations[] = {
#include "declarations.inc"
  };
  return kDeclarations;
}

}  // namespace meshard::tool
