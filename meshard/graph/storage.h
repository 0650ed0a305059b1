// The storage of a computed tensor. graph/ uses only this interface; runtime/ adds arrays on
// devices.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "meshard/array/dtype/dtype.h"
#include "meshard/array/host_array.h"
#include "meshard/array/shape.h"
#include "meshard/base/source_location.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

// The type and the sharding of an array on devices.

/// A value: a tensor type and, for a value over a mesh, its sharding. Immutable; copies share one
/// state, so that a program's results cost no copies of types, and are recognized as its arguments
/// without a comparison.
class ShardedType {
 public:
  ShardedType(TensorType type, std::optional<Sharding> sharding)
      : state_(std::make_shared<const State>(State{std::move(type), std::move(sharding)})) {}

  const TensorType& type() const { return state_->type; }
  /// nullptr for a value without a mesh.
  const Sharding* sharding() const { return state_->sharding ? &*state_->sharding : nullptr; }
  /// True if one is a copy of the other, so that they are equal. Compares no elements of their
  /// state.
  bool is_copy_of(const ShardedType& other) const { return state_ == other.state_; }
  friend bool operator==(const ShardedType& a, const ShardedType& b) {
    return a.is_copy_of(b) || (a.type() == b.type() && a.state_->sharding == b.state_->sharding);
  }

 private:
  struct State {
    TensorType type;
    std::optional<Sharding> sharding;
  };
  std::shared_ptr<const State> state_;
};

/// The bytes of a tensor, on the host or as shards on devices. Shared by reference count
/// (StoragePtr). Immutable, but a donation may release it early.
class Storage {
 public:
  /// kAbstract: no bytes, only a type and a sharding.
  enum class Kind : std::uint8_t { kHost, kDevice, kAbstract };

  virtual ~Storage() { delete attachment_.load(std::memory_order_relaxed); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Kind kind() const { return kind_; }
  /// The sharding of the bytes; nullptr for host memory, and for a value on one device without a
  /// mesh.
  virtual const Sharding* sharding() const { return nullptr; }
  /// The type and sharding of an array on devices; nullptr for other storage.
  const ShardedType* sharded_type() const { return sharded_type_; }
  /// Copies the whole value to host memory, from the parts that this process has. No program is
  /// compiled for it; Evaluator::read() may compile one.
  /// @error failed precondition if the value was donated or deleted.
  virtual HostArray to_host(SourceLocation where) const = 0;
  /// The parts of the value that this process has, as text, if others are in other processes; empty
  /// if this process has the whole value. Does not communicate.
  /// @error failed precondition if the value was donated or deleted.
  virtual std::string local_text(SourceLocation) const { return {}; }
  /// Waits until the value is available.
  /// @error what failed while it was computed or moved; failed precondition if it was donated or
  /// deleted.
  virtual void wait(SourceLocation) const {}
  /// A description of where the bytes are: `host`, `devices 0,1 of cpu`.
  virtual std::string placement() const = 0;
  /// Why the value is gone (donated or deleted, and where); empty while it is available.
  virtual std::string gone() const { return {}; }

  /// The data that the runtime keeps with a value: its copies on other devices. Owned by the
  /// storage.
  struct Attachment {
    virtual ~Attachment() = default;
  };
  /// The attachment; nullptr if there is none.
  Attachment* attachment() const { return attachment_.load(std::memory_order_acquire); }
  /// Attaches `made` unless another thread was faster. Returns the attachment.
  Attachment& attach(std::unique_ptr<Attachment> made) const {
    Attachment* present = nullptr;
    if (attachment_.compare_exchange_strong(present, made.get(), std::memory_order_acq_rel))
      return *made.release();
    return *present;
  }

 protected:
  /// @pre `type` is a member of the storage
  explicit Storage(Kind kind, const ShardedType* type = nullptr)
      : kind_(kind), sharded_type_(type) {}

 private:
  friend class StoragePtr;
  mutable std::atomic<std::uint32_t> references_{0};
  Kind kind_;
  const ShardedType* sharded_type_;
  mutable std::atomic<Attachment*> attachment_{nullptr};
};

/// An owner: an intrusive shared pointer to a Storage.
class StoragePtr {
 public:
  StoragePtr() = default;
  explicit StoragePtr(Storage* storage) : storage_(storage) { retain(); }
  /// The first owner of a new storage. @pre no other thread sees the storage
  static StoragePtr first_of(Storage* storage) {
    storage->references_.store(1, std::memory_order_relaxed);
    return adopt(storage);
  }
  StoragePtr(const StoragePtr& other) : storage_(other.storage_) { retain(); }
  StoragePtr(StoragePtr&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  StoragePtr& operator=(StoragePtr other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StoragePtr() {
    // The only owner needs no atomic subtraction.
    if (storage_ && (storage_->references_.load(std::memory_order_acquire) == 1 ||
                     storage_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1))
      delete storage_;
  }

  Storage* get() const { return storage_; }
  Storage* operator->() const { return storage_; }
  Storage& operator*() const { return *storage_; }
  explicit operator bool() const { return storage_ != nullptr; }
  /// Releases the pointer without decrementing the count, which the caller then owns.
  Storage* release() { return std::exchange(storage_, nullptr); }
  /// Takes over a count from release().
  static StoragePtr adopt(Storage* storage) {
    StoragePtr pointer;
    pointer.storage_ = storage;
    return pointer;
  }

 private:
  void retain() {
    if (storage_) storage_->references_.fetch_add(1, std::memory_order_relaxed);
  }
  Storage* storage_ = nullptr;
};

template <class T, class... Arguments>
StoragePtr make_storage(Arguments&&... arguments) {  ///< A new storage of class T.
  return StoragePtr::first_of(new T(std::forward<Arguments>(arguments)...));
}

/// A value in host memory, which is copied to devices when its sharding is known.
class HostStorage final : public Storage {
 public:
  explicit HostStorage(HostArray array) : Storage(Kind::kHost), array_(std::move(array)) {}

  const HostArray& array() const { return array_; }
  HostArray to_host(SourceLocation) const override { return array_; }
  std::string placement() const override { return "host"; }

 private:
  HostArray array_;
};

// The stored values of C++ numbers in lazily recorded programs.

/// The stored value, of rank 0, of a number in `dtype`. Equal numbers share one storage and its
/// copies on devices, so a number is copied to a device only once. May be called from several
/// threads.
/// @error as scalar_array()
StoragePtr number_storage(DType dtype, double number,
                          SourceLocation where = SourceLocation::current());

}  // namespace meshard
