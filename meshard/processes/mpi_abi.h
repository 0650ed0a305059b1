/* The interface of libmeshard_mpi.so, which is built against the MPI of a machine and opened at run
 * time. Plain C: it holds no type of MPI (whose handles differ between implementations) and none of
 * C++. Its one exported function is meshard_mpi_api(). */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function below changes. A library of another version is refused. */
#define MESHARD_MPI_VERSION 3

/* Element types that MPI combines itself. */
typedef enum MeshardMpiType {
  kMeshardMpiBool = 0, /* one byte, 0 or 1 */
  kMeshardMpiI8,
  kMeshardMpiI16,
  kMeshardMpiI32,
  kMeshardMpiI64,
  kMeshardMpiU8,
  kMeshardMpiU16,
  kMeshardMpiU32,
  kMeshardMpiU64,
  kMeshardMpiF32,
  kMeshardMpiF64,
  kMeshardMpiC64,
  kMeshardMpiC128
} MeshardMpiType;

/* Reductions; the numbers are those of meshard::Reduction. Sums of bools are `or`, products `and`.
 */
typedef enum MeshardMpiReduction {
  kMeshardMpiSum = 0,
  kMeshardMpiProduct,
  kMeshardMpiMin, /* NaN if an operand is NaN; -0 < +0 */
  kMeshardMpiMax,
  kMeshardMpiAnd,
  kMeshardMpiOr,
  kMeshardMpiXor
} MeshardMpiReduction;

/* Ranks of the processes that take part in a call, in the order of the group. */
typedef struct MeshardMpiGroup {
  const int* ranks;
  int size;
} MeshardMpiGroup;

/* Bytes for another process, which are only read, or memory for bytes from one. */
typedef struct MeshardMpiMessage {
  int process;
  int tag; /* from 0 */
  void* data;
  uint64_t bytes;
} MeshardMpiMessage;

/* The text of an error. */
typedef struct MeshardMpiError {
  char text[1024];
} MeshardMpiError;

/* Every function returns 0, or a number that is not 0 after it has filled `error`. Sizes and counts
 * may exceed 2^31. Calls from several threads are serialized where MPI wants it. */
typedef struct MeshardMpiApi {
  uint32_t version;
  uint32_t struct_size;
  /* Starts MPI unless the program has done so. `threads`: how many threads of this process may wait
   * in MPI at the same time. */
  int (*initialize)(int threads, int* rank, int* size, MeshardMpiError* error);
  /* Ends MPI if initialize() started it. Waits for the other processes. */
  int (*finalize)(MeshardMpiError* error);
  /* The name and version of the MPI library. MPI need not have been started. */
  int (*library_name)(char* name, size_t size, MeshardMpiError* error);
  /* Larger messages are cut into pieces of this size; 0 restores the default, 1 GiB. For tests. */
  void (*set_largest_message)(uint64_t bytes);
  int (*all_reduce)(MeshardMpiGroup group, MeshardMpiReduction op, MeshardMpiType type,
                    const void* in, void* out, uint64_t count, MeshardMpiError* error);
  int (*reduce_scatter)(MeshardMpiGroup group, MeshardMpiReduction op, MeshardMpiType type,
                        const void* in, void* out, uint64_t count, MeshardMpiError* error);
  int (*all_gather)(MeshardMpiGroup group, const void* in, void* out, uint64_t bytes,
                    MeshardMpiError* error);
  int (*all_to_all)(MeshardMpiGroup group, const void* in, void* out, uint64_t bytes,
                    MeshardMpiError* error);
  /* `root` is a position in the group. */
  int (*broadcast)(MeshardMpiGroup group, int root, void* data, uint64_t bytes,
                   MeshardMpiError* error);
  /* -1: no process; `out` is left alone without a sender. */
  int (*permute)(int to, int from, const void* in, void* out, uint64_t bytes,
                 MeshardMpiError* error);
  /* Sends and receives all messages at the same time. Messages of one tag between two processes
   * keep their order. Several threads may call at the same time, with different tags. */
  int (*exchange)(const MeshardMpiMessage* sent, uint64_t sent_count,
                  const MeshardMpiMessage* received, uint64_t received_count,
                  MeshardMpiError* error);
  /* Starts to send or to receive a message, without waiting. These messages never meet those of
   * exchange(). Their memory is in use until they have ended. `*started` is for the next two. */
  int (*start_message)(MeshardMpiMessage message, int sends, void** started,
                       MeshardMpiError* error);
  /* Whether a started message has ended; does not wait. `started` is gone once it has, also with an
   * error. */
  int (*message_ended)(void* started, int* ended, MeshardMpiError* error);
  /* Gives up a receive. `started` is gone, and its memory is not used any more. */
  int (*cancel_receive)(void* started, MeshardMpiError* error);
  /* The largest tag of a message, after initialize(). */
  int (*largest_tag)(void);
} MeshardMpiApi;

typedef const MeshardMpiApi* (*MeshardMpiApiFunction)(void);

#ifdef __cplusplus
}
#endif
