#include "meshard/hlo/interface.h"

#include "meshard/hlo/internal/reader.h"

// Field numbers are those of xla/service/hlo.proto: HloModuleProtoWithConfig {hlo_module 1},
// HloModuleProto {host_program_shape 4, spmd_output_sharding 12, spmd_parameters_shardings 14}.
namespace meshard {
namespace {

using internal::damaged;
using pjrt::WireField;
using pjrt::WireReader;

}  // namespace

Result<HloInterface> HloInterface::from_bytes(std::string_view module_with_config) {
  HloInterface interface;
  WireReader outer(module_with_config);
  while (auto module = outer.next()) {
    if (module->number != 1) continue;
    WireReader reader(module->bytes);
    while (auto field = reader.next())
      MESHARD_RETURN_IF_ERROR(internal::read_interface_field(*field, interface));
    if (!reader.ok()) return damaged("the module");
  }
  if (!outer.ok()) return damaged("the compiled module");
  return interface;
}

namespace internal {
namespace {

Result<void> read_program_shape(std::string_view bytes, HloInterface& to) {
  WireReader reader(bytes);
  while (auto field = reader.next()) {
    if (field->number == 1) {
      MESHARD_ASSIGN_OR_RETURN(HloShape shape, read_shape(field->bytes));
      to.parameters.push_back(std::move(shape));
    }
    if (field->number == 2) {
      MESHARD_ASSIGN_OR_RETURN(to.result, read_shape(field->bytes));
    }
  }
  return reader.ok() ? Result<void>() : damaged("the program's shape");
}

}  // namespace

Result<void> read_interface_field(const WireField& field, HloInterface& to) {
  switch (field.number) {
    case 4: return read_program_shape(field.bytes, to);
    case 12: {
      MESHARD_ASSIGN_OR_RETURN(to.output_sharding, HloSharding::from_bytes(field.bytes));
      return {};
    }
    case 14: {
      MESHARD_ASSIGN_OR_RETURN(auto sharding, HloSharding::from_bytes(field.bytes));
      to.parameter_shardings.push_back(std::move(sharding));
      return {};
    }
    default: return {};
  }
}

}  // namespace internal
}  // namespace meshard
