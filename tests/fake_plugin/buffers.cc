// Buffers of the fake plugin, and transfers to and from them.
#include <cstring>

#include "tests/fake_plugin/clock.h"
#include "tests/fake_plugin/state.h"

namespace fake {

bool element_of(PJRT_Buffer_Type number, Type& to) {
  static const int64_t bytes[] = {0,  1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 2, 8,
                                  16, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1};
  auto index = static_cast<size_t>(number);
  if (index >= std::size(bytes) || bytes[index] == 0) return false;
  to.element = static_cast<int>(number);
  // XLA's PrimitiveType numbers differ from 13 on.
  static const int primitives[] = {16, 15, 18, 19, 20, 23, 24, 25, 21, 22};
  to.primitive = index < 13 ? to.element : index < 23 ? primitives[index - 13] : 0;
  to.bytes = bytes[index];
  return true;
}

namespace {

// When a copy of a buffer is ready: with the buffer, or later on the simulated clock.
MomentPtr ready_copy(const PJRT_Buffer& source) {
  if (!simulated_clock().is_on()) return source.ready;
  auto ready = std::make_shared<Moment>();
  simulated_clock().copy(*source.ready, source.data->size, *ready);
  std::lock_guard lock(source.ready->mutex);
  ready->finish(source.ready->code, source.ready->message);
  return ready;
}

PJRT_Error* deleted(const PJRT_Buffer* buffer) {
  return buffer->deleted ? invalid("buffer has been deleted or donated") : nullptr;
}

void copy_strided(const char* from, char*& to, const PJRT_Client_BufferFromHostBuffer_Args* args,
                  size_t axis, int64_t bytes) {
  if (axis == args->num_dims) {
    memcpy(to, from, static_cast<size_t>(bytes));
    to += bytes;
    return;
  }
  for (int64_t i = 0; i < args->dims[axis]; ++i)
    copy_strided(from + i * args->byte_strides[axis], to, args, axis + 1, bytes);
}

ENTRY(PJRT_Client_BufferFromHostBuffer) {
  ENTER(PJRT_Client_BufferFromHostBuffer);
  auto buffer = std::make_unique<PJRT_Buffer>();
  if (args->data == nullptr) return invalid("null data");
  if (PJRT_Error* error = check_local(args->device)) return error;
  if (!element_of(args->type, buffer->type)) return invalid("no such element type");
  buffer->type.dims.assign(args->dims, args->dims + args->num_dims);
  buffer->device = args->device;
  auto size = static_cast<size_t>(buffer->type.size());
  auto* from = static_cast<const char*>(args->data);
  bool holds = args->host_buffer_semantics >= PJRT_HostBufferSemantics_kImmutableZeroCopy;
  bool aligned = reinterpret_cast<uintptr_t>(from) % 64 == 0;
  if (holds && aligned && control().zero_copy && args->num_byte_strides == 0 && size > 0) {
    bool writable = args->host_buffer_semantics == PJRT_HostBufferSemantics_kMutableZeroCopy;
    buffer->data = std::make_shared<Bytes>(args->device, const_cast<char*>(from), size, writable);
  } else {
    buffer->data = std::make_shared<Bytes>(args->device, size);
    char* to = buffer->data->data;
    if (args->num_byte_strides != 0 && size != 0)
      copy_strided(from, to, args, 0, buffer->type.bytes);
    else if (size != 0)
      memcpy(to, from, size);
  }
  buffer->ready = past();
  {
    std::lock_guard lock(control().mutex);
    if (control().transfer_fail_in > 0 && --control().transfer_fail_in == 0) {
      buffer->ready = std::make_shared<Moment>();
      buffer->ready->finish(control().transfer_code, "the transfer failed as the test asked");
    }
  }
  // Follows the host buffer semantics even if it copies: zero-copy holds the host memory.
  MomentPtr released = holds ? std::make_shared<Moment>() : past();
  if (holds) buffer->data->host_released = released;
  args->done_with_host_buffer = event_of(std::move(released));
  args->buffer = buffer.release();
  return nullptr;
}
ENTRY(PJRT_Client_CreateUninitializedBuffer) {
  ENTER(PJRT_Client_CreateUninitializedBuffer);
  if (PJRT_Error* error = check_local(args->device)) return error;
  auto buffer = std::make_unique<PJRT_Buffer>();
  if (!element_of(args->shape_element_type, buffer->type)) return invalid("no such element type");
  buffer->type.dims.assign(args->shape_dims, args->shape_dims + args->shape_num_dims);
  buffer->device = args->device;
  buffer->data = std::make_shared<Bytes>(args->device, static_cast<size_t>(buffer->type.size()));
  buffer->ready = past();
  args->buffer = buffer.release();
  return nullptr;
}
ENTRY(PJRT_Client_CreateViewOfDeviceBuffer) {
  ENTER(PJRT_Client_CreateViewOfDeviceBuffer);
  if (args->on_delete_callback == nullptr) return invalid("null callback");
  auto buffer = std::make_unique<PJRT_Buffer>();
  if (!element_of(args->element_type, buffer->type)) return invalid("no such element type");
  buffer->type.dims.assign(args->dims, args->dims + args->num_dims);
  buffer->device = args->device;
  auto* bytes = static_cast<char*>(args->device_buffer_ptr);
  buffer->data = std::make_shared<Bytes>(args->device, static_cast<size_t>(buffer->type.size()));
  memcpy(buffer->data->data, bytes, buffer->data->size);
  buffer->ready = past();
  buffer->on_release = [call = args->on_delete_callback, pointer = args->device_buffer_ptr,
                        user = args->on_delete_callback_arg] { call(pointer, user); };
  args->buffer = buffer.release();
  return nullptr;
}
ENTRY(PJRT_Buffer_Destroy) {
  if (args->buffer->external != 0) delete invalid("a buffer with external references is destroyed");
  delete args->buffer;
  return nullptr;
}
ENTRY(PJRT_Buffer_Delete) {
  ENTER(PJRT_Buffer_Delete);
  args->buffer->deleted = true;
  return nullptr;
}
ENTRY(PJRT_Buffer_IsDeleted) {
  ENTER(PJRT_Buffer_IsDeleted);
  args->is_deleted = args->buffer->deleted;
  return nullptr;
}
ENTRY(PJRT_Buffer_OnDeviceSizeInBytes) {
  ENTER(PJRT_Buffer_OnDeviceSizeInBytes);
  args->on_device_size_in_bytes = args->buffer->data->size;
  return nullptr;
}
ENTRY(PJRT_Buffer_ReadyEvent) {
  ENTER(PJRT_Buffer_ReadyEvent);
  if (PJRT_Error* error = deleted(args->buffer)) return error;
  args->event = event_of(args->buffer->ready);
  std::lock_guard lock(control().mutex);
  if (control().ready_fail_in > 0 && --control().ready_fail_in == 0) {
    auto failed = std::make_shared<Moment>();
    failed->finish(control().ready_code, "the event failed as the test asked");
    args->event->moment = std::move(failed);
  }
  return nullptr;
}
ENTRY(PJRT_Buffer_ToHostBuffer) {
  ENTER(PJRT_Buffer_ToHostBuffer);
  if (PJRT_Error* error = deleted(args->src)) return error;
  if (args->dst_size < args->src->data->size) return invalid("the destination is too small");
  // Waits for the launch itself: a test that needs a slow copy delays the entry.
  args->src->ready->wait();
  memcpy(args->dst, args->src->data->data, args->src->data->size);
  args->event = event_of(args->src->ready);
  return nullptr;
}
ENTRY(PJRT_Buffer_CopyRawToHost) {
  ENTER(PJRT_Buffer_CopyRawToHost);
  if (PJRT_Error* error = deleted(args->buffer)) return error;
  args->buffer->ready->wait();
  memcpy(args->dst, args->buffer->data->data + args->offset,
         static_cast<size_t>(args->transfer_size));
  args->event = event_of(args->buffer->ready);
  return nullptr;
}
ENTRY(PJRT_Buffer_CopyToDevice) {
  ENTER(PJRT_Buffer_CopyToDevice);
  if (PJRT_Error* error = check_local(args->dst_device)) return error;
  if (PJRT_Error* error = deleted(args->buffer)) return error;
  auto* copy = new PJRT_Buffer;
  copy->type = args->buffer->type;
  copy->device = args->dst_device;
  copy->ready = ready_copy(*args->buffer);
  copy->data = args->buffer->data->copy(args->dst_device);
  args->dst_buffer = copy;
  return nullptr;
}
ENTRY(PJRT_Buffer_UnsafePointer) {
  ENTER(PJRT_Buffer_UnsafePointer);
  if (PJRT_Error* error = deleted(args->buffer)) return error;
  args->buffer_pointer = reinterpret_cast<uintptr_t>(args->buffer->data->data);
  return nullptr;
}
ENTRY(PJRT_Buffer_CopyToMemory) {
  ENTER(PJRT_Buffer_CopyToMemory);
  if (PJRT_Error* error = deleted(args->buffer)) return error;
  auto* copy = new PJRT_Buffer;
  copy->type = args->buffer->type;
  copy->device = args->dst_memory->device;
  copy->ready = ready_copy(*args->buffer);
  copy->data = args->buffer->data->copy(copy->device);
  args->dst_buffer = copy;
  return nullptr;
}
ENTRY(PJRT_Buffer_IncreaseExternalReferenceCount) {
  ENTER(PJRT_Buffer_IncreaseExternalReferenceCount);
  ++args->buffer->external;
  ++external_references;
  return nullptr;
}
ENTRY(PJRT_Buffer_DecreaseExternalReferenceCount) {
  ENTER(PJRT_Buffer_DecreaseExternalReferenceCount);
  if (args->buffer->external == 0) return invalid("the buffer has no external reference");
  --args->buffer->external;
  --external_references;
  return nullptr;
}

}  // namespace

#define SET(Name) api.Name = Name
void set_buffer_entries(PJRT_Api& api) {
  SET(PJRT_Client_BufferFromHostBuffer);
  SET(PJRT_Client_CreateUninitializedBuffer);
  SET(PJRT_Client_CreateViewOfDeviceBuffer);
  SET(PJRT_Buffer_Destroy);
  SET(PJRT_Buffer_Delete);
  SET(PJRT_Buffer_IsDeleted);
  SET(PJRT_Buffer_OnDeviceSizeInBytes);
  SET(PJRT_Buffer_ReadyEvent);
  SET(PJRT_Buffer_ToHostBuffer);
  SET(PJRT_Buffer_CopyRawToHost);
  SET(PJRT_Buffer_CopyToDevice);
  SET(PJRT_Buffer_CopyToMemory);
  SET(PJRT_Buffer_UnsafePointer);
  SET(PJRT_Buffer_IncreaseExternalReferenceCount);
  SET(PJRT_Buffer_DecreaseExternalReferenceCount);
}
#undef SET

}  // namespace fake
