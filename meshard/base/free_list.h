// Reuses the memory of objects that are made and destroyed often.
#pragma once
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

namespace meshard::internal {

/// The freed blocks of this thread for objects of type T, kept for reuse. A step of a program frees
/// about as many objects as it makes, and malloc would cost as much as the rest of making them;
/// besides, it would mix them with the plugin's blocks. Keeps at most `kKept` blocks per thread.
template <class T, std::size_t kKept = 1 << 16>
class FreeList {
 public:
  /// Memory for one T.
  static void* take() {
    List& list = of_thread;
    if (!list.first) {
      void* fresh = std::malloc(sizeof(T));
      if (!fresh) throw std::bad_alloc();
      return fresh;
    }
    --list.count;
    return std::exchange(list.first, list.first->next);
  }
  /// Takes back memory from take(), of any thread.
  static void give(void* memory) noexcept {
    List& list = of_thread;
    if (list.closed || list.count >= kMost) return std::free(memory);
    ++list.count;
    list.first = ::new (memory) Link{list.first};
  }

 private:
#if defined(__SANITIZE_ADDRESS__)
  static constexpr std::size_t kMost = 0;  // uses of freed objects are found
#else
  static constexpr std::size_t kMost = kKept;
#endif
  struct Link {
    Link* next;
  };
  struct List {
    ~List() {
      while (first) std::free(std::exchange(first, first->next));
      closed = true;
    }
    Link* first = nullptr;
    std::size_t count = 0;
    bool closed = false;
  };
  static inline thread_local List of_thread;
};

}  // namespace meshard::internal
