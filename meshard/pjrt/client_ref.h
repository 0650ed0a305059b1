// Keeps a client alive: every owner of one of its objects holds a ClientRef.
#pragma once
#include <utility>

struct PJRT_Api;
struct PJRT_AsyncHostToDeviceTransferManager;
struct PJRT_Buffer;
struct PJRT_Event;
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
struct PJRT_TopologyDescription;

namespace meshard::pjrt {

namespace internal {
struct ClientState;
void add_references(ClientState* client, long count) noexcept;
void drop_reference(ClientState* client) noexcept;
void drop_references(ClientState* client, long count) noexcept;
}  // namespace internal

/// A reference-counting handle on a client's state. Cheap to copy; as thread-safe as shared_ptr.
/// May be empty.
class ClientRef {
 public:
  ClientRef() = default;
  explicit ClientRef(internal::ClientState* state) : state_(state) {
    if (state_ != nullptr) internal::add_references(state_, 1);
  }
  ClientRef(const ClientRef& other) : ClientRef(other.state_) {}
  ClientRef(ClientRef&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  ClientRef& operator=(ClientRef other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  ~ClientRef() {
    if (state_ != nullptr) internal::drop_reference(state_);
  }
  /// Takes ownership of a reference that is already counted.
  static ClientRef take(internal::ClientState* state) {
    ClientRef ref;
    ref.state_ = state;
    return ref;
  }
  internal::ClientState* get() const { return state_; }
  internal::ClientState* operator->() const { return state_; }
  explicit operator bool() const { return state_ != nullptr; }
  friend bool operator==(const ClientRef&, const ClientRef&) = default;

 private:
  internal::ClientState* state_ = nullptr;
};

namespace internal {

/// Frees an object of the plugin; errors are ignored, since no caller could handle them.
void destroy(const PJRT_Api* api, PJRT_AsyncHostToDeviceTransferManager* transfer) noexcept;
void destroy(const PJRT_Api* api, PJRT_Buffer* buffer) noexcept;
void destroy(const PJRT_Api* api, PJRT_Event* event) noexcept;
void destroy(const PJRT_Api* api, PJRT_Executable* executable) noexcept;
void destroy(const PJRT_Api* api, PJRT_LoadedExecutable* executable) noexcept;
void destroy(const PJRT_Api* api, PJRT_TopologyDescription* topology) noexcept;

/// Move-only owner of an object of the plugin, or of none. Keeps its client alive.
template <class Raw>
struct Owned {
  Owned() = default;
  Owned(ClientRef of, const PJRT_Api* plugin, Raw* object)
      : client(std::move(of)), api(plugin), raw(object) {}
  Owned(Owned&& other) noexcept
      : client(std::move(other.client)), api(other.api), raw(std::exchange(other.raw, nullptr)) {}
  Owned& operator=(Owned other) noexcept {
    std::swap(client, other.client);
    std::swap(api, other.api);
    std::swap(raw, other.raw);
    return *this;
  }
  ~Owned() {
    if (raw != nullptr) destroy(api, raw);
  }

  ClientRef client;
  const PJRT_Api* api = nullptr;
  Raw* raw = nullptr;
};

}  // namespace internal
}  // namespace meshard::pjrt
