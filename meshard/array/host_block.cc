// Tested in meshard/array/host_array_test.cc.
#include "meshard/array/host_block.h"

#include <sys/mman.h>

#include <cstring>
#include <limits>
#include <memory>
#include <new>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[noreturn]] void no_memory(std::size_t bytes) {
  throw Error(ErrorCode::kResourceExhausted,
              cat("[host_array] cannot allocate ", bytes, " bytes of host memory"));
}

/// Maps at least `bytes`, aligned to a huge page; pages are zero-filled on first access.
std::byte* map_huge(std::size_t bytes, std::size_t& mapped) {
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) no_memory(bytes);
  mapped = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  std::size_t reserved = mapped + kHugePage;
  void* start = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) no_memory(bytes);
  auto address = reinterpret_cast<std::uintptr_t>(start);
  std::size_t before = (kHugePage - address % kHugePage) % kHugePage;
  auto* data = static_cast<std::byte*>(start) + before;
  if (before != 0) munmap(start, before);
  if (kHugePage != before) munmap(data + mapped, kHugePage - before);
  (void)madvise(data, mapped, MADV_HUGEPAGE);  // a hint: kernels without huge pages reject it
  return data;
}

}  // namespace

HostBlock HostBlock::allocate(std::size_t bytes) {
  auto control = std::make_unique<Control>();
  control->bytes = bytes;
  if (bytes >= kHugeBlockBytes) {
    control->data = map_huge(bytes, control->mapped);
  } else {
    // Rounded up to whole cache lines, so that two blocks never share one. Aligned by hand, because
    // the allocator's aligned allocations fragment the heap when thousands of small blocks come and
    // go.
    std::size_t rounded = (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
    control->allocation = ::operator new(rounded + kHostAlignment, std::nothrow);
    if (control->allocation == nullptr) no_memory(bytes);
    auto address = reinterpret_cast<std::uintptr_t>(control->allocation);
    control->data = static_cast<std::byte*>(control->allocation) +
                    (kHostAlignment - address % kHostAlignment) % kHostAlignment;
  }
  return HostBlock(control.release());
}

HostBlock HostBlock::allocate_zeroed(std::size_t bytes) {
  HostBlock block = allocate(bytes);
  if (block.control_->mapped == 0) std::memset(block.data(), 0, bytes);
  return block;
}

HostBlock HostBlock::adopt(void* data, std::size_t bytes, std::function<void()> release,
                           bool borrowed) {
  auto control = std::make_unique<Control>();
  control->data = static_cast<std::byte*>(data);
  control->bytes = bytes;
  control->release = std::move(release);
  control->borrowed = borrowed;
  return HostBlock(control.release());
}

void HostBlock::destroy() noexcept {
  if (control_->mapped != 0) munmap(control_->data, control_->mapped);
  ::operator delete(control_->allocation);
  if (control_->release) control_->release();
  delete control_;
}

}  // namespace meshard
