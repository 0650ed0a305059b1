// What a computed tensor is made of. graph/ knows only this face; runtime/ adds the arrays on
// devices.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "meshard/array/host_array.h"
#include "meshard/base/source_location.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The bytes behind a tensor: on the host, or as shards on devices. Shared by reference count
/// (StoragePtr); its contents never change, but a donation may end its life early.
class Storage {
 public:
  /// kAbstract: nowhere, a value that has a type and a sharding only.
  enum class Kind : std::uint8_t { kHost, kDevice, kAbstract };

  virtual ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Kind kind() const { return kind_; }
  /// How the value lies on a mesh; nullptr for host memory and for a value on one device without a
  /// mesh.
  virtual const Sharding* sharding() const { return nullptr; }
  /// The whole value in host memory; nothing is compiled for it.
  /// @error failed precondition if the value was donated or deleted.
  virtual HostArray to_host(SourceLocation where) const = 0;
  /// Returns when the value is there.
  /// @error what went wrong while it was computed or moved; failed precondition if it was donated
  /// or deleted.
  virtual void wait(SourceLocation) const {}
  /// Where the bytes are, for people: `host`, `devices 0,1 of cpu`.
  virtual std::string placement() const = 0;
  /// Why the value is gone (donated or deleted, and where), or empty while it lives.
  virtual std::string gone() const { return {}; }

  /// The copies in other places that programs made of this value, newest first, so that a value
  /// goes there once; runtime/ owns their meaning and locks them.
  struct Placement;
  std::shared_ptr<Placement>& placements() const { return placements_; }

 protected:
  explicit Storage(Kind kind) : kind_(kind) {}

 private:
  friend class StoragePtr;
  mutable std::atomic<std::uint32_t> references_{0};
  Kind kind_;
  mutable std::shared_ptr<Placement> placements_;
};

/// An owner: shared pointer to a Storage with the count inside it.
class StoragePtr {
 public:
  StoragePtr() = default;
  explicit StoragePtr(Storage* storage) : storage_(storage) { retain(); }
  StoragePtr(const StoragePtr& other) : storage_(other.storage_) { retain(); }
  StoragePtr(StoragePtr&& other) noexcept : storage_(std::exchange(other.storage_, nullptr)) {}
  StoragePtr& operator=(StoragePtr other) noexcept {
    std::swap(storage_, other.storage_);
    return *this;
  }
  ~StoragePtr() {
    if (storage_ && storage_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete storage_;
  }

  Storage* get() const { return storage_; }
  Storage* operator->() const { return storage_; }
  Storage& operator*() const { return *storage_; }
  explicit operator bool() const { return storage_ != nullptr; }
  /// Gives the reference away; the caller owns one count.
  Storage* release() { return std::exchange(storage_, nullptr); }
  /// Takes over a count that release() gave away.
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

struct Storage::Placement {
  StoragePtr storage;
  bool arrived = false;  // known to hold its value
  std::shared_ptr<Placement> next;
};

template <class T, class... Arguments>
StoragePtr make_storage(Arguments&&... arguments) {
  return StoragePtr(new T(std::forward<Arguments>(arguments)...));
}

/// A value that is still (or only) in host memory: it goes to devices when its sharding is known.
class HostStorage final : public Storage {
 public:
  explicit HostStorage(HostArray array) : Storage(Kind::kHost), array_(std::move(array)) {}

  const HostArray& array() const { return array_; }
  HostArray to_host(SourceLocation) const override { return array_; }
  std::string placement() const override { return "host"; }

 private:
  HostArray array_;
};

}  // namespace meshard
