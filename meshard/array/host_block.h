// Blocks of host memory: who owns the bytes of a host array, and how they are freed.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace meshard {

/// Every block we allocate begins at a multiple of this, so that a CPU plugin can use it in place.
inline constexpr std::size_t kHostAlignment = 64;
/// Blocks of at least this many bytes get pages of their own and ask for huge ones.
inline constexpr std::size_t kHugeBlockBytes = std::size_t{4} << 20;

/// Who may write to the bytes of a host array.
enum class Ownership : std::uint8_t {
  kPrivate,   ///< one handle: it may be written, given away, donated in place
  kShared,    ///< several handles: immutable
  kBorrowed,  ///< the caller's memory: immutable, and alive until released
};

/// A handle on reference-counted bytes; copies share them. Safe to copy and drop from several
/// threads.
class HostBlock {
 public:
  HostBlock() = default;
  /// Uninitialised bytes, aligned to kHostAlignment. A large block is mapped on its own and advised
  /// to use huge pages (only this block: the process's allocator and policy stay as they are).
  /// @error resource exhausted if there is no memory.
  static HostBlock allocate(std::size_t bytes);
  /// Same, with all bytes zero. Pages of a large block are not touched.
  static HostBlock allocate_zeroed(std::size_t bytes);
  /// Memory of someone else. `release` is called once, when the last handle is gone, on the thread
  /// that drops it; it may be empty, and must not throw.
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
  /// An answer of kPrivate holds until this very handle is copied.
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
    std::size_t mapped = 0;      // bytes to unmap; 0 if the block is not a mapping of ours
    void* allocation = nullptr;  // what operator new gave; null if the block is not from there
    bool borrowed = false;
    std::function<void()> release;
  };
  explicit HostBlock(Control* control) : control_(control) {}
  void destroy() noexcept;

  Control* control_ = nullptr;
};

}  // namespace meshard
