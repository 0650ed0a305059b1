#include "tools/conformance/txla/sharding_text.h"

#include "meshard/sharding/op_sharding.h"

namespace meshard::conformance {

std::string hlo_text(const Sharding& sharding) {
  return tile_assignment(sharding).with_device_ids(sharding.mesh()).canonical().to_string();
}

std::string canonical_type_name(const Sharding& sharding) {
  return std::string(to_string(canonical_type(sharding)));
}

}  // namespace meshard::conformance
