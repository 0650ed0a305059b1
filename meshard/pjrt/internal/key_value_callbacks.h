// The key-value callbacks of PJRT_Client_Create, over a KeyValueStore.
#pragma once
#include "meshard/pjrt/internal/c_api.h"
#include "meshard/pjrt/key_value_store.h"

namespace meshard::pjrt::internal {

/// Sets the callbacks. @pre `store` outlives the client
void set_key_value_callbacks(PJRT_Client_Create_Args& args, KeyValueStore& store);

}  // namespace meshard::pjrt::internal
