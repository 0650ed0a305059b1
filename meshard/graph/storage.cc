#include "meshard/graph/storage.h"

#include <bit>
#include <mutex>
#include <unordered_map>

#include "meshard/array/number.h"

namespace meshard {
namespace {

// A program that uses more numbers than this varies them (a schedule), so old ones do not recur.
constexpr std::size_t kMostNumbers = 256;

struct NumberKey {
  DType dtype;
  std::uint64_t bits;  // -0.0 and 0.0 differ, a NaN equals itself
  friend bool operator==(const NumberKey&, const NumberKey&) = default;
};

struct HashNumberKey {
  std::size_t operator()(const NumberKey& key) const {
    return std::hash<std::uint64_t>()(key.bits) ^ (static_cast<std::size_t>(key.dtype) << 1);
  }
};

struct Numbers {
  std::mutex mutex;
  std::unordered_map<NumberKey, StoragePtr, HashNumberKey> stored;
};

Numbers& numbers() {
  // Never destroyed: tensors with static storage may be computed during exit.
  static Numbers* instance = new Numbers();
  return *instance;
}

}  // namespace

StoragePtr number_storage(DType dtype, double number, SourceLocation where) {
  NumberKey key{dtype, std::bit_cast<std::uint64_t>(number)};
  Numbers& all = numbers();
  std::lock_guard lock(all.mutex);
  auto found = all.stored.find(key);
  if (found != all.stored.end()) return found->second;
  StoragePtr storage = make_storage<HostStorage>(scalar_array(Scalar(number), dtype, where));
  if (all.stored.size() == kMostNumbers) all.stored.clear();
  all.stored.emplace(key, storage);
  return storage;
}

}  // namespace meshard
