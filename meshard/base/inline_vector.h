// A vector that stores its first N elements inline. Shapes, strides and operand lists rarely have
// more than a few elements, and recording a node must take well under 100 ns.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace meshard {

/// A sequence with value semantics: up to N elements are stored inline, more on the heap. Moving
/// leaves the source empty. Iterators are pointers and are invalidated by growth.
template <class T, std::size_t N>
class InlineVector {
 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;
  using size_type = std::size_t;
  using reference = T&;
  using const_reference = const T&;

  InlineVector() noexcept = default;
  explicit InlineVector(std::size_t count) { resize(count); }
  InlineVector(std::size_t count, const T& value) {
    reserve(count);
    for (std::size_t i = 0; i < count; ++i) push_back(value);
  }
  InlineVector(std::initializer_list<T> values) : InlineVector(values.begin(), values.end()) {}
  template <std::forward_iterator Iterator>
  InlineVector(Iterator first, Iterator last) {
    reserve(static_cast<std::size_t>(std::distance(first, last)));
    for (; first != last; ++first) push_back(*first);
  }
  explicit InlineVector(std::span<const T> values) : InlineVector(values.begin(), values.end()) {}

  InlineVector(const InlineVector& other) { assign_copy(other); }
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) {
      clear();
      assign_copy(other);
    }
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~InlineVector() { release(); }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::size_t capacity() const noexcept { return capacity_; }
  T* data() noexcept { return heap() ? heap_ : inline_data(); }
  const T* data() const noexcept { return heap() ? heap_ : inline_data(); }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  auto rbegin() { return std::reverse_iterator(end()); }
  auto rend() { return std::reverse_iterator(begin()); }
  auto rbegin() const { return std::reverse_iterator(end()); }
  auto rend() const { return std::reverse_iterator(begin()); }

  void reserve(std::size_t wanted) {
    if (wanted > capacity_) grow(wanted);
  }
  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (size_ == capacity_) [[unlikely]] {
      T value(std::forward<Arguments>(arguments)...);  // the arguments may alias an element
      grow(static_cast<std::size_t>(capacity_) * 2);
      return *::new (data() + size_++) T(std::move(value));
    }
    return *::new (data() + size_++) T(std::forward<Arguments>(arguments)...);
  }
  /// Appends `count` elements whose values are not set, and returns the first of them.
  T* append_uninitialized(std::size_t count) requires std::is_trivial_v<T> {
    reserve(size_ + count);
    T* first = data() + size_;
    size_ += static_cast<std::uint32_t>(count);
    return first;
  }
  void pop_back() { data()[--size_].~T(); }
  void clear() noexcept {
    destroy(data(), size_);
    size_ = 0;
  }
  void resize(std::size_t count) {
    reserve(count);
    while (size_ > count) pop_back();
    while (size_ < count) emplace_back();
  }
  void assign(std::size_t count, const T& value) { *this = InlineVector(count, value); }
  template <std::forward_iterator Iterator>
  void assign(Iterator first, Iterator last) {
    *this = InlineVector(first, last);
  }
  T* insert(const T* position, T value) {
    std::size_t at = static_cast<std::size_t>(position - data());
    push_back(std::move(value));
    for (std::size_t i = size_ - 1; i > at; --i) std::swap(data()[i], data()[i - 1]);
    return begin() + at;
  }
  T* erase(const T* position) {
    T* at = begin() + (position - data());
    for (T* to = at; to + 1 != end(); ++to) *to = std::move(to[1]);
    pop_back();
    return at;
  }

  friend bool operator==(const InlineVector& a, const InlineVector& b) {
    if (a.size_ != b.size_) return false;
    const T *left = a.data(), *right = b.data();  // a loop: a call of memcmp takes longer
    for (std::size_t i = 0; i < a.size_; ++i)
      if (!(left[i] == right[i])) return false;
    return true;
  }
  friend auto operator<=>(const InlineVector& a,
                          const InlineVector& b) requires std::three_way_comparable<T> {
    std::size_t shared = a.size_ < b.size_ ? a.size_ : b.size_;
    for (std::size_t i = 0; i < shared; ++i)
      if (auto order = a[i] <=> b[i]; order != 0) return order;
    return static_cast<std::compare_three_way_result_t<T>>(a.size_ <=> b.size_);
  }

 private:
  static constexpr bool kCopiesStorage = std::is_trivially_copyable_v<T> && N * sizeof(T) <= 64;

  bool heap() const noexcept { return capacity_ > N; }
  T* inline_data() noexcept { return std::launder(reinterpret_cast<T*>(&storage_)); }
  const T* inline_data() const noexcept {
    return std::launder(reinterpret_cast<const T*>(&storage_));
  }

  // The functions of <memory> do the same, but are expensive to compile for each T.
  static void destroy([[maybe_unused]] T* elements, [[maybe_unused]] std::size_t count) noexcept {
    if constexpr (!std::is_trivially_destructible_v<T>)
      for (std::size_t i = 0; i < count; ++i) elements[i].~T();
  }
  static void move_elements(T* from, std::size_t count, T* to) noexcept {
    for (std::size_t i = 0; i < count; ++i) ::new (to + i) T(std::move(from[i]));
  }

  // Copies the inline storage as a whole: a few moves without a loop. @pre both are inline
  void copy_storage(const InlineVector& other) noexcept {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // what is beyond the elements
#endif
    std::memcpy(&storage_, &other.storage_, sizeof storage_);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
    size_ = other.size_;
  }
  void assign_copy(const InlineVector& other) {
    if constexpr (kCopiesStorage)
      if (!other.heap() && !heap()) return copy_storage(other);
    reserve(other.size_);
    const T* from = other.data();
    for (T* to = data(); size_ < other.size_; ++size_) ::new (to + size_) T(from[size_]);
  }
  void take(InlineVector& other) noexcept {
    if (other.heap()) {
      heap_ = other.heap_;
      capacity_ = other.capacity_;
      size_ = other.size_;
      other.capacity_ = N;
      other.size_ = 0;
    } else if constexpr (kCopiesStorage) {
      copy_storage(other);
      other.size_ = 0;
    } else {
      move_elements(other.data(), other.size_, inline_data());
      size_ = other.size_;
      other.clear();
    }
  }
  void release() noexcept {
    clear();
    if (heap()) {
      std::allocator<T>().deallocate(heap_, capacity_);
      capacity_ = N;
    }
  }
  void grow(std::size_t wanted) {
    T* fresh = std::allocator<T>().allocate(wanted);
    move_elements(data(), size_, fresh);
    destroy(data(), size_);
    if (heap()) std::allocator<T>().deallocate(heap_, capacity_);
    heap_ = fresh;
    capacity_ = static_cast<std::uint32_t>(wanted);
  }

  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = N;
  union {
    T* heap_;
    alignas(T) std::byte storage_[(N == 0 ? 1 : N) * sizeof(T)];
  };
};

}  // namespace meshard
