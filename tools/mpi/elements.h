// The element types of collectives, and how MPI combines elements.
#pragma once
#include <mpi.h>

#include <cmath>
#include <cstdint>

#include "meshard/processes/mpi_abi.h"

namespace meshard::mpi {

/// A failed call of MPI.
struct MpiFailure {
  int code;
};

inline void check(int code) {
  if (code != MPI_SUCCESS) throw MpiFailure{code};
}

template <class T>
T least(T a, T b) {
  if (a != a || b != b) return a != a ? a : b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T greatest(T a, T b) {
  if (a != a || b != b) return a != a ? a : b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

template <class T, T (*kCombine)(T, T)>
void combine_floats(const void* in, void* into, int count) {
  auto* a = static_cast<const T*>(in);
  auto* b = static_cast<T*>(into);
  for (int i = 0; i < count; ++i) b[i] = kCombine(a[i], b[i]);
}

// MPI_MIN and MPI_MAX leave open what becomes of NaN and of zeros.
inline void float_min(void* in, void* into, int* count, MPI_Datatype* type) {
  if (*type == MPI_FLOAT)
    combine_floats<float, least>(in, into, *count);
  else
    combine_floats<double, least>(in, into, *count);
}
inline void float_max(void* in, void* into, int* count, MPI_Datatype* type) {
  if (*type == MPI_FLOAT)
    combine_floats<float, greatest>(in, into, *count);
  else
    combine_floats<double, greatest>(in, into, *count);
}

// Open MPI 4.1 adds 8-bit and 16-bit integers with saturation (its op component for AVX). Integers
// wrap around, signed ones by the same bits as unsigned ones.
template <class T>
void wrapping_sum(void* in, void* into, int* count, MPI_Datatype*) {
  auto* a = static_cast<const T*>(in);
  auto* b = static_cast<T*>(into);
  for (int i = 0; i < *count; ++i) b[i] = static_cast<T>(a[i] + b[i]);
}

inline MPI_Datatype datatype_of(MeshardMpiType type) {
  switch (type) {
    case kMeshardMpiBool:
    case kMeshardMpiU8: return MPI_UINT8_T;
    case kMeshardMpiI8: return MPI_INT8_T;
    case kMeshardMpiI16: return MPI_INT16_T;
    case kMeshardMpiI32: return MPI_INT32_T;
    case kMeshardMpiI64: return MPI_INT64_T;
    case kMeshardMpiU16: return MPI_UINT16_T;
    case kMeshardMpiU32: return MPI_UINT32_T;
    case kMeshardMpiU64: return MPI_UINT64_T;
    case kMeshardMpiF32: return MPI_FLOAT;
    case kMeshardMpiF64: return MPI_DOUBLE;
    case kMeshardMpiC64: return MPI_C_FLOAT_COMPLEX;
    case kMeshardMpiC128: return MPI_C_DOUBLE_COMPLEX;
  }
  throw MpiFailure{MPI_ERR_TYPE};
}

inline std::uint64_t bytes_of(MPI_Datatype type) {
  int size = 0;
  check(MPI_Type_size(type, &size));
  return static_cast<std::uint64_t>(size);
}

}  // namespace meshard::mpi
