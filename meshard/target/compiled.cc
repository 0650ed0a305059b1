#include "meshard/target/compiled.h"

#include "meshard/base/packed_fields.h"

namespace meshard {

std::string Compiled::serialize() const { return to_packed(*this); }

Result<Compiled> Compiled::deserialize(std::string_view bytes) {
  return from_packed<Compiled>(bytes, "compiled");
}

}  // namespace meshard
