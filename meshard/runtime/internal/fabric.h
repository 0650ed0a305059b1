// One interface for executing over a set of devices, wherever they are.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/base/result.h"
#include "meshard/graph/evaluator.h"
#include "meshard/lowering/lower.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/disk_cache.h"
#include "meshard/runtime/internal/move_plan.h"

namespace meshard {

class DeviceArray;
class Platforms;

/// A lowered program to load on the devices of its mesh.
struct ProgramToLoad {
  /// Its source, for messages.
  const Program& program;
  LoweredModule& lowered;
  /// The device assignment (device_assignment.h).
  const std::vector<int>& devices;
  const DiskCache& disk;
  SourceLocation where;
  /// Loads it if all its devices are of this process. @error thrown: the compiler's
  std::function<std::shared_ptr<const LoadedProgram>()> load_here;
};

/// Owner of what it takes to execute over the devices of one client: to load programs, which then
/// define how they are launched (LoadedProgram), to bring values to other processes, and to read
/// them whole. This class is for devices of one process; AcrossProcesses and TogetherProcesses are
/// for those of several. One for each client; lives as long as the platforms. Thread-safe, but the
/// processes of a fabric must make the calls that communicate in the same order.
class Fabric {
 public:
  /// The receivers of gather(), other than one process by its number.
  static constexpr int kAllProcesses = -1, kProcessesOfValue = -2;

  explicit Fabric(const Platforms& platforms, pjrt::Client client)
      : platforms_(platforms), client_(std::move(client)) {}
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;
  virtual ~Fabric() = default;

  const pjrt::Client& client() const { return client_; }
  /// Whether some of the client's devices are of other processes.
  bool is_shared() const { return client_.device_count() != client_.addressable_devices().size(); }

  /// Whether all devices of the mesh are of this process.
  bool has_all_devices(const Mesh& mesh) const;
  /// Whether this process, and each process that has a part of it, has the whole value:
  /// reading it needs no other process. The same in all of these processes.
  virtual bool reads_alone(const DeviceArray& array) const;

  /// The program on its devices, as far as they are of this process. All processes that have some,
  /// or need its results, load the same programs in the same order.
  /// @error thrown: the compiler's; that the processes load different programs
  virtual std::shared_ptr<const LoadedProgram> load(const ProgramToLoad& what);
  /// How values go to devices of other processes.
  virtual RouteOptions::Exchange exchange() const { return RouteOptions::Exchange::kNone; }
  /// How values go from the devices of one mesh to those of another: kNone if all are of this
  /// process.
  RouteOptions::Exchange exchange_between(const Mesh& from, const Mesh& to) const;
  /// Begins to move a value to the devices of `target`'s mesh; waits for nothing. Called by all
  /// processes of both meshes.
  /// @pre exchange() is kPieces; neither sharding has unreduced axes; the value has elements
  /// @return the buffers of this process, in the order of the target's mesh, which become ready
  /// when their tiles have arrived, or fail if they do not
  /// @error an earlier failure of the communication; the plugin's errors
  virtual Result<std::vector<pjrt::Buffer>> receive(const DeviceArray& source,
                                                    const Sharding& target, SourceLocation where);
  /// Brings the whole value to the process `to`, or to several. Called by all processes that have
  /// parts of it or receive it. Waits for it.
  /// @pre `destination` has the bytes of the value, in each process that receives it
  /// @return false if the fabric sends no values: a program has to replicate it
  /// @error thrown: failed precondition if this process cannot have it; deadline exceeded if a
  /// process does not take part; the communication's
  virtual bool gather(const DeviceArray& source, int to, void* destination, SourceLocation where);
  /// Checks that all processes of the mesh are about to place the same array, if the runtime is
  /// asked to (Platforms::checks_host_data()).
  /// @error thrown: that they are not; deadline exceeded
  virtual void check_equal_data(const HostArray&, const Mesh&, SourceLocation) {}

  /// Reports that this process failed in a step that others wait for: they get an error that
  /// contains this one. Later launches and transfers of this process that communicate fail.
  virtual void give_up(const Error&) {}
  /// Before the process ends: waits until all messages from this process to others are being sent.
  virtual void finish() {}
  /// The end of its services, before another client takes its place. Launches in flight go on.
  virtual void stop() {}

 protected:
  const Platforms& platforms() const { return platforms_; }

 private:
  const Platforms& platforms_;
  pjrt::Client client_;
};

}  // namespace meshard
