// Keeps a client alive: every owner of one of its objects holds a ClientRef.
#pragma once
#include <utility>

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

}  // namespace meshard::pjrt
