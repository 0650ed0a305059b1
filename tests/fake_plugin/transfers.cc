// Transfers of several buffers to one device, in chunks.
#include <cstring>

#include "tests/fake_plugin/state.h"

struct PJRT_AsyncHostToDeviceTransferManager : fake::Counted {
  PJRT_Device* device = nullptr;
  std::vector<std::unique_ptr<PJRT_Buffer>> buffers;  // null once taken
  std::vector<fake::BytesPtr> bytes;
  std::vector<fake::MomentPtr> arrived;
};

namespace fake {
namespace {

template <class Args>
PJRT_Error* check_index(const Args* args) {
  auto index = static_cast<size_t>(args->buffer_index);
  return index < args->transfer_manager->bytes.size() ? nullptr : invalid("no such buffer");
}

ENTRY(PJRT_Client_CreateBuffersForAsyncHostToDevice) {
  ENTER(PJRT_Client_CreateBuffersForAsyncHostToDevice);
  auto manager = std::make_unique<PJRT_AsyncHostToDeviceTransferManager>();
  manager->device = args->memory->device;
  for (size_t i = 0; i < args->num_shape_specs; ++i) {
    const PJRT_ShapeSpec& spec = args->shape_specs[i];
    auto buffer = std::make_unique<PJRT_Buffer>();
    if (!element_of(spec.element_type, buffer->type)) return invalid("no such element type");
    buffer->type.dims.assign(spec.dims, spec.dims + spec.num_dims);
    buffer->device = manager->device;
    buffer->ready = std::make_shared<Moment>();
    buffer->data =
        std::make_shared<Bytes>(manager->device, static_cast<size_t>(buffer->type.size()));
    manager->bytes.push_back(buffer->data);
    manager->arrived.push_back(buffer->ready);
    manager->buffers.push_back(std::move(buffer));
  }
  args->transfer_manager = manager.release();
  return nullptr;
}
ENTRY(PJRT_AsyncHostToDeviceTransferManager_Destroy) {
  delete args->transfer_manager;
  return nullptr;
}
ENTRY(PJRT_AsyncHostToDeviceTransferManager_BufferSize) {
  ENTER(PJRT_AsyncHostToDeviceTransferManager_BufferSize);
  if (PJRT_Error* error = check_index(args)) return error;
  args->buffer_size = args->transfer_manager->bytes[static_cast<size_t>(args->buffer_index)]->size;
  return nullptr;
}
ENTRY(PJRT_AsyncHostToDeviceTransferManager_TransferData) {
  ENTER(PJRT_AsyncHostToDeviceTransferManager_TransferData);
  if (PJRT_Error* error = check_index(args)) return error;
  auto index = static_cast<size_t>(args->buffer_index);
  Bytes& bytes = *args->transfer_manager->bytes[index];
  auto offset = static_cast<size_t>(args->offset), size = static_cast<size_t>(args->transfer_size);
  if (offset > bytes.size || size > bytes.size - offset) return invalid("outside the buffer");
  memcpy(bytes.data + offset, args->data, size);
  if (args->is_last_transfer) args->transfer_manager->arrived[index]->finish();
  args->done_with_h2d_transfer = event_of(past());
  return nullptr;
}
ENTRY(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer) {
  ENTER(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer);
  if (PJRT_Error* error = check_index(args)) return error;
  auto& buffer = args->transfer_manager->buffers[static_cast<size_t>(args->buffer_index)];
  if (buffer == nullptr) return invalid("the buffer was retrieved before");
  args->buffer_out = buffer.release();
  return nullptr;
}
ENTRY(PJRT_AsyncHostToDeviceTransferManager_SetBufferError) {
  ENTER(PJRT_AsyncHostToDeviceTransferManager_SetBufferError);
  if (PJRT_Error* error = check_index(args)) return error;
  args->transfer_manager->arrived[static_cast<size_t>(args->buffer_index)]->finish(
      args->error_code, {args->error_message, args->error_message_size});
  return nullptr;
}

}  // namespace

#define SET(Name) api.Name = Name
void set_transfer_entries(PJRT_Api& api) {
  SET(PJRT_Client_CreateBuffersForAsyncHostToDevice);
  SET(PJRT_AsyncHostToDeviceTransferManager_Destroy);
  SET(PJRT_AsyncHostToDeviceTransferManager_BufferSize);
  SET(PJRT_AsyncHostToDeviceTransferManager_TransferData);
  SET(PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer);
  SET(PJRT_AsyncHostToDeviceTransferManager_SetBufferError);
}
#undef SET

}  // namespace fake
