// The part of XLA's foreign function interface (FFI) that meshard uses: the binary layout of a
// typed custom call. Declared here from the interface's documented layout (xla/ffi/api/c_api.h and
// xla/pjrt/c/pjrt_c_api_ffi_extension.h of OpenXLA), which is equal in its versions 0.1 to 0.4.
#pragma once
#include <cstddef>
#include <cstdint>

struct PJRT_Error;
struct PJRT_Extension_Base;

namespace meshard::pjrt::ffi {

struct Extension {
  std::size_t struct_size;
  int type;
  Extension* next;
};
inline constexpr int kMetadataExtension = 1;

struct Version {
  std::size_t struct_size;
  Extension* extensions;
  int major;
  int minor;
};

/// Filled in by a handler: the version that it was built for.
struct Metadata {
  std::size_t struct_size;
  Version version;
  std::uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

/// Bytes that are not terminated by a null.
struct Bytes {
  const char* data;
  std::size_t size;
};

struct Buffer {
  std::size_t struct_size;
  Extension* extensions;
  int element;  // number of XLA's PrimitiveType
  void* data;
  std::int64_t rank;
  std::int64_t* dimensions;
};
inline constexpr int kBuffer = 1;

/// Arguments or results.
struct Values {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t size;
  int* types;
  void** values;
};

struct Attributes {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t size;
  int* types;
  Bytes** names;
  void** values;
};
inline constexpr int kArray = 1, kScalar = 3, kString = 4;

/// The value of an attribute that is an array of numbers.
struct Array {
  int element;  // number of XLA's PrimitiveType
  std::size_t size;
  void* data;
};
struct Scalar {
  int element;
  void* value;
};

struct Error;
struct Context;

struct ErrorCreateArgs {
  std::size_t struct_size;
  Extension* extensions;
  const char* message;
  int code;
};
struct DeviceOrdinalArgs {
  std::size_t struct_size;
  Extension* extensions;
  Context* context;
  std::int32_t ordinal;  // out
};

/// The plugin's function table; entries that meshard does not call have no type.
struct Api {
  std::size_t struct_size;
  Extension* extensions;
  Version version;
  void* internal;
  Error* (*create_error)(ErrorCreateArgs*);
  void* unused[16];
  Error* (*device_ordinal)(DeviceOrdinalArgs*);
};

inline constexpr int kExecute = 3;  // the other stages prepare a run

struct CallFrame {
  std::size_t struct_size;
  Extension* extensions;
  const Api* api;
  Context* context;
  int stage;
  Values arguments;
  Values results;
  Attributes attributes;
};

using Handler = Error*(CallFrame*);

/// Of the extension PJRT_Extension_Type_FFI, as in API 0.81 and newer.
struct RegisterArgs {
  std::size_t struct_size;
  const char* target;
  std::size_t target_size;
  void* handler;
  const char* platform;
  std::size_t platform_size;
  int traits;
};
}  // namespace meshard::pjrt::ffi
