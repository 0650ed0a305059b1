// Tested in tests/processes/fabric_program.cc.
#include "meshard/runtime/internal/fabric.h"

#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/device_assignment.h"

namespace meshard {

bool Fabric::has_all_devices(const Mesh& mesh) const {
  return reach_of(client_, mesh) == Reach::kHere;
}

bool Fabric::reads_alone(const DeviceArray& array) const { return array.has_all_parts(); }

std::shared_ptr<const LoadedProgram> Fabric::load(const ProgramToLoad& what) {
  return what.load_here();
}

RouteOptions::Exchange Fabric::exchange_between(const Mesh& from, const Mesh& to) const {
  const bool stays = has_all_devices(from) && has_all_devices(to);
  return stays ? RouteOptions::Exchange::kNone : exchange();
}

Result<std::vector<pjrt::Buffer>> Fabric::receive(const DeviceArray&, const Sharding&,
                                                  SourceLocation) {
  return Error(ErrorCode::kUnimplemented,
               "[transfer] these tiles cannot be copied directly between devices");
}

bool Fabric::gather(const DeviceArray&, int, void*, SourceLocation) { return false; }

}  // namespace meshard
