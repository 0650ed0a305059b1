// Blocks of host memory: who owns the bytes of a host array, and how they are freed.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace meshard {

/// The alignment of every allocated block, so that a CPU plugin can use it in place.
inline constexpr std::size_t kHostAlignment = 64;
/// Blocks of at least this many bytes are mapped separately, with a request for huge pages.
inline constexpr std::size_t kHugeBlockBytes = std::size_t{4} << 20;

/// Who may write to the bytes of a host array.
enum class Ownership : std::uint8_t {
  kPrivate,   ///< one handle: may be written, moved, donated in place
  kShared,    ///< several handles: immutable
  kBorrowed,  ///< the caller's memory: immutable, and alive until released
};

/// A handle on reference-counted bytes, which copies share. Safe to copy and drop from several
/// threads.
class HostBlock {
 public:
  HostBlock() = default;
  /// Allocates uninitialized bytes, aligned to kHostAlignment. A large block is mapped separately
  /// and advised to use huge pages. This affects only the block, not the process's allocator or
  /// huge-page policy.
  /// @error resource exhausted if there is no memory.
  static HostBlock allocate(std::size_t bytes);
  /// Same, with all bytes zero. Pages of a large block are not touched.
  static HostBlock allocate_zeroed(std::size_t bytes);
  /// Wraps memory that was allocated elsewhere. `release` is called once, on the thread that drops
  /// the last handle. It may be empty and must not throw.
  static HostBlock adopt(void* data, std::size_t bytes, std::function<void()> release,
                         bool borrowed);

  HostBlock(const HostBlock& other) noexcept : control_(other.control_) {
    if (control_) control_->handles.fetch_add(1, std::memory_order_relaxed);
  }
  HostBlock(HostBlock&& other) noexcept : control_(std::exchange(other.control_, nullptr)) {}
  HostBlock& operator=(HostBlock other) noexcept {
    std::swap(control_, other.control_);
    return *this;
  }
  ~HostBlock() {
    if (control_ && control_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }

  std::byte* data() const { return control_ ? control_->data : nullptr; }
  std::size_t bytes() const { return control_ ? control_->bytes : 0; }
  /// Who may write the bytes. A result of kPrivate holds until this handle is copied.
  Ownership ownership() const {
    if (!control_) return Ownership::kPrivate;
    if (control_->borrowed) return Ownership::kBorrowed;
    return control_->handles.load(std::memory_order_acquire) == 1 ? Ownership::kPrivate
                                                                  : Ownership::kShared;
  }

 private:
  struct Control {
    std::atomic<std::int64_t> handles{1};
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::size_t mapped = 0;      // bytes to unmap; 0 if the block was not mapped
    void* allocation = nullptr;  // from operator new; null if allocated otherwise
    bool borrowed = false;
    std::function<void()> release;
  };
  explicit HostBlock(Control* control) : control_(control) {}
  void destroy() noexcept;

  Control* control_ = nullptr;
};

}  // namespace meshard
