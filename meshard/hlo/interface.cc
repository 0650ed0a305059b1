#include "meshard/hlo/interface.h"

#include "meshard/hlo/internal/reader.h"

// Field numbers are those of xla/service/hlo.proto: HloModuleProtoWithConfig {hlo_module 1},
// HloModuleProto {host_program_shape 4, spmd_output_sharding 12, spmd_parameters_shardings 14}.
namespace meshard {
namespace {

using pjrt::field;
using pjrt::on_field;
using pjrt::read_message;
using pjrt::WireField;

}  // namespace

Result<void> internal::read_interface_field(const WireField& from, HloInterface& to) {
  switch (from.number) {
    case 4:
      return read_message(from.bytes, "the program's shape", field(1, to.parameters, read_shape),
                          field(2, to.result, read_shape));
    case 12: return field(12, to.output_sharding, HloSharding::from_bytes).take(from);
    case 14: return field(14, to.parameter_shardings, HloSharding::from_bytes).take(from);
    default: return {};
  }
}

Result<HloInterface> HloInterface::from_bytes(std::string_view module_with_config) {
  HloInterface to;
  auto module = [&](const WireField& from) {
    return read_message(from.bytes, "the module", pjrt::other_fields([&](const WireField& each) {
                          return internal::read_interface_field(each, to);
                        }));
  };
  MESHARD_RETURN_IF_ERROR(
      read_message(module_with_config, "the compiled module", on_field(1, module)));
  return to;
}

}  // namespace meshard
