// The C structures of DLPack 1.1 (https://dmlc.github.io/dlpack/latest/c_api.html).
#pragma once
#include <cstdint>

namespace meshard::python::dlpack {

struct Version {
  std::uint32_t major = 1, minor = 1;
};

/// Kinds of devices: the host, pinned host memory of CUDA and of ROCm.
inline constexpr std::int32_t kCpu = 1, kCudaHost = 3, kRocmHost = 11;

struct Device {
  std::int32_t kind = kCpu;
  std::int32_t id = 0;
};

enum TypeCode : std::uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6,
  kFloat8E3M4 = 7,
  kFloat8E4M3 = 8,
  kFloat8E4M3B11Fnuz = 9,
  kFloat8E4M3Fn = 10,
  kFloat8E4M3Fnuz = 11,
  kFloat8E5M2 = 12,
  kFloat8E5M2Fnuz = 13,
  kFloat8E8M0Fnu = 14,
};

struct DataType {
  std::uint8_t code = kFloat;
  std::uint8_t bits = 32;
  std::uint16_t lanes = 1;
};

struct Array {
  void* data = nullptr;
  Device device;
  std::int32_t ndim = 0;
  DataType dtype;
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;  // in elements; null: row-major
  std::uint64_t byte_offset = 0;
};

/// What a capsule named `dltensor` holds.
struct Managed {
  Array array;
  void* context = nullptr;
  void (*deleter)(Managed*) = nullptr;
};

inline constexpr std::uint64_t kReadOnly = 1, kIsCopied = 2;

/// What a capsule named `dltensor_versioned` holds.
struct ManagedVersioned {
  Version version;
  void* context = nullptr;
  void (*deleter)(ManagedVersioned*) = nullptr;
  std::uint64_t flags = 0;
  Array array;
};

}  // namespace meshard::python::dlpack
