// What keeps a client alive: every owner of something inside it holds one.
#pragma once
#include <utility>

namespace meshard::pjrt {

namespace internal {
struct ClientState;
void add_references(ClientState* client, long count) noexcept;
void drop_reference(ClientState* client) noexcept;
}  // namespace internal

/// A handle that counts references on a client's state. Cheap to copy; safe in several threads as a
/// shared_ptr is. Empty ones are allowed.
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
  /// Takes over a reference that was counted before.
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
