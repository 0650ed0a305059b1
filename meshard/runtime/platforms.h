// The clients of a process: one for each platform, created at first use.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/mesh/mesh.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/runtime.h"

namespace meshard {

class Fabric;
class LaunchedResults;

/// Immovable owner of the clients. Thread-safe.
///
/// Clients are never moved or destroyed, also after a restart: references to them exist, and
/// destroying a wedged client would wait for its launches.
class Platforms {
 public:
  Platforms();
  ~Platforms();
  Platforms(const Platforms&) = delete;
  Platforms& operator=(const Platforms&) = delete;

  /// See configure_runtime().
  Result<void> configure(RuntimeOptions options);
  /// See runtime_client().
  const pjrt::Client& client(SourceLocation where);
  const pjrt::Client& client(std::string_view device_type, SourceLocation where);
  const pjrt::Client& client(const Mesh& mesh, SourceLocation where);
  /// The current clients, the default platform's first.
  std::vector<const pjrt::Client*> started() const;
  /// The current client of a mesh's devices, if it has started; otherwise null.
  const pjrt::Client* find_started(const Mesh& mesh) const;
  /// What executes over the devices of a client (internal/fabric.h).
  /// @pre the client is one of these platforms'
  Fabric& fabric(const pjrt::Client& client) const;
  /// The fabric of the current client of a mesh's devices, if it has started; otherwise null.
  Fabric* find_fabric(const Mesh& mesh) const;
  /// The fabric of the default platform's current client, if it has started; otherwise null.
  Fabric* default_fabric() const;
  /// See RuntimeOptions::check_host_data.
  /// @error invalid argument for an invalid MESHARD_CHECK_HOST_DATA
  bool checks_host_data() const;
  /// Determines which device types refer to the default platform (mesh/device_type.h). Starts its
  /// client only if the name depends on the plugin. Called before values are combined whose meshes
  /// may or may not have device types.
  void know_default(SourceLocation where);

  /// See restart_runtime().
  void restart();
  /// The number of restarts. Values and programs of an earlier generation are on replaced clients.
  std::uint32_t generation() const { return generation_.load(std::memory_order_relaxed); }

  /// Waits for every launch in flight. Their errors are reported to users of the results.
  void wait_for_launches() const;

  /// The recorded values that launches compute.
  LaunchedResults& launched_results() const { return *launched_; }
  /// Waits until it is known which launches have failed, and forgets their results. Called before
  /// the error of a failed launch is thrown.
  void handle_failure() const;

 private:
  // A platform and its client.
  struct Platform {
    std::mutex making;  // locked before mutex_
    std::atomic<const pjrt::Client*> client{nullptr};
  };
  // A copy of the options; while it exists, the options cannot be changed.
  class Making;

  template <class Make>
  const pjrt::Client& started(Platform& platform, Make make, SourceLocation where);
  RuntimeOptions options_now();
  bool is_default(std::string_view type, SourceLocation where);
  bool any_runs() const;         // under mutex_
  void publish_default_names();  // under mutex_

  // Under mutex_.
  Result<std::unique_ptr<Fabric>> connect(const pjrt::Client& client, bool is_default);

  Platform default_;
  std::atomic<bool> default_is_known_{false};
  std::atomic<std::uint32_t> generation_{0};
  const std::unique_ptr<LaunchedResults> launched_;

  mutable std::mutex mutex_;  // never held during a call of a plugin; guards what follows
  RuntimeOptions options_;
  int making_ = 0;  // clients that are being made with `options_`
  std::map<std::string, Platform, std::less<>> further_;
  std::vector<std::unique_ptr<Fabric>> fabrics_;  // of all clients, including replaced ones
};

}  // namespace meshard
