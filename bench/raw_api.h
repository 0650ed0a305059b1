// The plugin's C API without any layers: the floor of the rows for calls and transfers.
#pragma once
#include <pjrt/pjrt_c_api.h>

#include <cstdint>
#include <string>
#include <vector>

namespace meshard::bench {

/// Exits with the plugin's message if `error` is not null.
void check(const PJRT_Api* api, PJRT_Error* error, const char* call);
void await_event(const PJRT_Api* api, PJRT_Event* event);
void destroy_buffer(const PJRT_Api* api, PJRT_Buffer* buffer);
/// Waits until the buffer has its data.
void await_buffer(const PJRT_Api* api, PJRT_Buffer* buffer);

/// A plugin's table, a client of the plugin and its devices. Owns none of them.
struct RawClient {
  const PJRT_Api* api = nullptr;
  PJRT_Client* client = nullptr;
  std::vector<PJRT_Device*> devices;
};

/// The client of meshard's runtime, for use through the C API.
RawClient raw_runtime_client();
/// A new client of the plugin at `path`, with `devices` CPU devices.
RawClient make_raw_client(const std::string& path, int devices);

/// Sends an f32 array. Waits until the host memory can be reused, unless `semantics` is zero-copy.
PJRT_Buffer* send(const RawClient& client, const float* data, const std::vector<std::int64_t>& dims,
                  int device, PJRT_HostBufferSemantics semantics);

/// A program that is compiled and called through the C API. Its arguments are allocated once; its
/// outputs are freed, or become the arguments of the next call.
class RawProgram {
 public:
  /// `shards[i]`: the shape of argument i, f32, on each of devices 0..num_devices-1.
  RawProgram(RawClient client, const std::string& module, int num_devices,
             const std::vector<std::vector<std::int64_t>>& shards);
  ~RawProgram();
  RawProgram(const RawProgram&) = delete;
  RawProgram& operator=(const RawProgram&) = delete;

  /// Makes one call. With `wait_later`, await() may be called afterward.
  void launch(bool wait_later = true);
  void await();
  /// Frees the outputs.
  void free_outputs();
  /// Frees the arguments (consumed or not) and replaces them with the outputs.
  void outputs_become_arguments();

 private:
  using Lists = std::vector<std::vector<PJRT_Buffer*>>;  // by device
  RawClient client_;
  PJRT_LoadedExecutable* executable_ = nullptr;
  std::size_t num_devices_, num_arguments_;
  Lists arguments_, outputs_;
  std::vector<PJRT_Buffer* const*> argument_lists_;
  std::vector<PJRT_Buffer**> output_lists_;
  std::vector<PJRT_Event*> events_;
};

}  // namespace meshard::bench
