// Tested in tests/processes/fabric_program.cc.
#include "meshard/runtime/internal/fabric.h"

#include "meshard/runtime/internal/device_assignment.h"

namespace meshard {

std::shared_ptr<const LoadedProgram> Fabric::load(const ProgramToLoad& what) {
  return what.load_here();
}

RouteOptions::Exchange Fabric::exchange_between(const Mesh& from, const Mesh& to) const {
  const bool stays =
      reach_of(client_, from) == Reach::kHere && reach_of(client_, to) == Reach::kHere;
  return stays ? RouteOptions::Exchange::kNone : exchange();
}

Result<std::vector<pjrt::Buffer>> Fabric::receive(const DeviceArray&, const Sharding&,
                                                  SourceLocation) {
  return Error(ErrorCode::kUnimplemented,
               "[transfer] these tiles cannot be copied directly between devices");
}

bool Fabric::gather(const DeviceArray&, int, void*, SourceLocation) { return false; }

}  // namespace meshard
