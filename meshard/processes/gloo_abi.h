/* The interface of libmeshard_gloo.so, which is built against the Gloo of a machine and opened at
 * run time. Plain C, as mpi_abi.h. Its one exported function is meshard_gloo_api(). */
#pragma once
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised when a function below changes. A library of another version is refused. */
#define MESHARD_GLOO_VERSION 1

/* The text of an error. */
typedef struct MeshardGlooError {
  char text[1024];
} MeshardGlooError;

/* Where the processes put their addresses: small values by name, which all of them see. Both
 * functions return 0, or a number that is not 0. */
typedef struct MeshardGlooStore {
  void* context;
  int (*put)(void* context, const char* key, const void* data, uint64_t size);
  /* Waits for the value, and passes it to `receive` once. */
  int (*get)(void* context, const char* key, void (*receive)(void* into, const void*, uint64_t),
             void* into);
} MeshardGlooStore;

/* How a process takes part. */
typedef struct MeshardGlooMember {
  int rank;
  int size;
  /* The numeric address at which this process listens. */
  const char* host;
  /* A network interface to use instead, or null. */
  const char* interface_name;
  /* How long a connection may take. */
  uint64_t connect_milliseconds;
  MeshardGlooStore store;
} MeshardGlooMember;

/* Bytes for another process, which are only read, or memory for bytes from one. Messages of one
 * slot from one process to another arrive in the order in which they were sent. Those of different
 * slots never meet. */
typedef struct MeshardGlooMessage {
  int process;
  uint64_t slot;
  void* data;
  uint64_t bytes;
} MeshardGlooMessage;

/* Every function returns 0, or a number that is not 0 after it has filled `error`. Any thread may
 * call. */
typedef struct MeshardGlooApi {
  uint32_t version;
  uint32_t struct_size;
  /* Connects to all other processes. Called once, by all of them. */
  int (*connect)(MeshardGlooMember member, MeshardGlooError* error);
  /* Closes the connections. Not while another function runs. */
  int (*disconnect)(MeshardGlooError* error);
  /* The name and version of the Gloo library. */
  int (*library_name)(char* name, size_t size, MeshardGlooError* error);
  /* Sends and receives all messages at the same time. */
  int (*exchange)(const MeshardGlooMessage* sent, uint64_t sent_count,
                  const MeshardGlooMessage* received, uint64_t received_count,
                  MeshardGlooError* error);
  /* Starts to send or to receive a message, without waiting. Its memory is in use until it has
   * ended. `*started` is for the next two. */
  int (*start_message)(MeshardGlooMessage message, int sends, void** started,
                       MeshardGlooError* error);
  /* Whether a started message has ended; does not wait. `started` is gone once it has, also with an
   * error. */
  int (*message_ended)(void* started, int* ended, MeshardGlooError* error);
  /* Gives up a receive. `started` is gone, and its memory is not used any more. */
  int (*cancel_receive)(void* started, MeshardGlooError* error);
} MeshardGlooApi;

typedef const MeshardGlooApi* (*MeshardGlooApiFunction)(void);

#ifdef __cplusplus
}
#endif
