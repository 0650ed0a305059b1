// The arguments and outputs of a launch: checks, donation, ownership.
// Tested in tests/plugin/buffer_list_test.cc.
#include <algorithm>

#include "meshard/pjrt/internal/client_state.h"
#include "meshard/pjrt/internal/launch_call.h"
#include "meshard/pjrt/loaded_executable.h"

namespace meshard::pjrt {

using internal::BufferState;

Result<void> LoadedExecutable::check_sizes(const Call& call) const {
  std::size_t per_device = parameter_types_.size(), outputs = result_types_.size();
  auto wrong = [&](auto... parts) {
    return Error(ErrorCode::kInvalidArgument, cat("[", call.place, "] the program ", parts...));
  };
  if (call.has_lists) {
    if (call.lists.size() != per_device)
      return wrong("takes ", per_device, " arguments, got ", call.lists.size());
    if (call.output_lists.size() != outputs)
      return wrong("returns ", outputs, " outputs, got space for ", call.output_lists.size());
    return {};
  }
  std::size_t given = call.has_views ? call.views.size() : call.buffers.size();
  if (given != call.count * per_device)
    return wrong("takes ", per_device, " arguments on each of ", call.count, " devices, got ",
                 given, " in total");
  if (call.output_buffers.size() != call.count * outputs)
    return wrong("returns ", outputs, " outputs on each of ", call.count,
                 " devices, got space for ", call.output_buffers.size(), " in total");
  return {};
}

Result<void> LoadedExecutable::take_buffers(const Call& call) const {
  std::size_t per_device = parameter_types_.size();
  const Buffer* const* argument = call.buffers.data();
  PJRT_Buffer** raw = call.raw_arguments.data();
  for (std::size_t k = 0; k < call.count; ++k) {
    const Device* on = &device(call, k);
    for (std::size_t i = 0; i < per_device; ++i, ++argument, ++raw) {
      const Buffer* buffer = *argument;
      if (buffer == nullptr || buffer->own_.type != parameter_types_[i] || buffer->device_ != on ||
          !buffer->is_live()) [[unlikely]]
        return explain(call, k, i, buffer);
      *raw = buffer->raw_;
    }
  }
  return {};
}

Result<void> LoadedExecutable::take_views(const Call& call) const {
  for (std::size_t i = 0; i < call.views.size(); ++i) {
    const BufferView& view = call.views[i];
    if (!view || view.state_->type != parameter_types_[i] || view.device_ != &device(call, 0) ||
        !view.is_live()) [[unlikely]]
      return explain(call, 0, i, &view);
    call.raw_arguments[i] = view.raw_;
  }
  return {};
}

Result<void> LoadedExecutable::take_lists(const Call& call) const {
  std::size_t per_device = parameter_types_.size(), devices = call.count;
  PJRT_Buffer** raw = call.raw_arguments.data();
  for (std::size_t i = 0; i < per_device; ++i) {
    const BufferList* list = call.lists[i];
    if (list == nullptr || list->state_.type != parameter_types_[i] || !list->is_live())
        [[unlikely]]
      return explain_list(call, i);
    PJRT_Buffer* const* from = list->raw_.data();
    if (list->devices_ == devices_) [[likely]] {
      for (std::size_t k = 0; k < devices; ++k) raw[k * per_device + i] = from[k];
      continue;
    }
    const DeviceOrder* other = order_of(*list->devices_);
    if (other == nullptr) return explain_list(call, i);
    for (std::size_t k = 0; k < devices; ++k) raw[k * per_device + i] = from[other->order[k]];
  }
  return {};
}

// Null if the list has other devices than the program.
const LoadedExecutable::DeviceOrder* LoadedExecutable::order_of(const DeviceList& list) const {
  for (const DeviceOrder& known : orders_)
    if (known.of == &list) return &known;
  auto order = list.positions_of(*devices_);
  return order ? &orders_.emplace_back(&list, *std::move(order)) : nullptr;
}

Error LoadedExecutable::explain(const Call& call, std::size_t k, std::size_t i,
                                const BufferView* buffer) const {
  std::string place = cat("[", call.place, "] argument ", i, " of device ", device(call, k).id(),
                          " (number ", call.first + k, "): ");
  auto invalid = [&](auto... parts) {
    return Error(ErrorCode::kInvalidArgument, cat(place, parts...));
  };
  if (buffer == nullptr) return invalid("the buffer is null");
  if (auto live = buffer->check_live(call.place); !live.ok())
    return invalid(live.error().message());
  if (!buffer->is_of(client_)) return invalid("the buffer belongs to another client");
  if (buffer->type() != *parameter_types_[i])
    return invalid("the program takes ", *parameter_types_[i], ", the buffer is ", buffer->type());
  return invalid("the buffer is on device ", buffer->device_->id());
}

Error LoadedExecutable::explain_list(const Call& call, std::size_t i) const {
  const BufferList* list = call.lists[i];
  auto invalid = [&](auto... parts) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[", call.place, "] argument ", i, ": ", parts...));
  };
  if (list == nullptr) return invalid("the list is null");
  if (!*list) return invalid("the list is empty");
  if (auto live = (*list)[0].check_live(call.place); !live.ok())
    return invalid(live.error().message());
  if (!list->is_of(client_)) return invalid("the buffers belong to another client");
  if (list->type() != *parameter_types_[i])
    return invalid("the program takes ", *parameter_types_[i], ", the buffers are ", list->type());
  auto ids = [](const DeviceList& devices) {
    std::string text;
    for (const Device* device : devices.devices())
      append(text, cat(text.empty() ? "" : ",", device->id()));
    return text;
  };
  return invalid("the buffers are on devices ", ids(list->devices()),
                 ", the program runs on devices ", ids(*devices_));
}

// Marks the buffers that this launch consumes, and rejects one that is passed twice.
Result<void> LoadedExecutable::claim_donated(Call& call) const {
  if (signature_.donated.empty()) return {};
  std::size_t per_device = parameter_types_.size();
  std::uint32_t mark = ++client_->launch_mark;
  if (mark == 0) mark = ++client_->launch_mark;  // 0 marks a new buffer
  call.mark = mark;
  auto kept = [&](std::size_t parameter) {
    return std::ranges::binary_search(call.options.keep, static_cast<std::int64_t>(parameter));
  };
  auto twice = [&](std::size_t parameter, std::size_t owner) {
    return Error(ErrorCode::kInvalidArgument,
                 cat("[", call.place, "] argument ", parameter,
                     call.has_lists ? std::string() : cat(" of device ", device(call, owner).id()),
                     ": the same buffer is passed twice, and one of the two arguments is donated"));
  };
  for (std::size_t owner = 0; owner < call.owners(); ++owner)
    for (int donated : signature_.donated) {
      auto i = static_cast<std::size_t>(donated);
      if (kept(i)) continue;
      const BufferState& state = call.state(i, owner, per_device);
      if (state.launch_mark == mark) return twice(i, owner);
      state.launch_mark = mark;
    }
  std::size_t next_donated = 0;
  for (std::size_t i = 0; i < per_device; ++i) {
    bool donated = next_donated < signature_.donated.size() &&
                   signature_.donated[next_donated] == static_cast<int>(i);
    if (donated) ++next_donated;
    if (donated && !kept(i)) continue;
    for (std::size_t owner = 0; owner < call.owners(); ++owner)
      if (call.state(i, owner, per_device).launch_mark == mark) return twice(i, owner);
  }
  std::int64_t bytes = 0;  // of the donated lists, on each device
  for (std::size_t owner = 0; owner < call.owners(); ++owner)
    for (int donated : signature_.donated) {
      auto i = static_cast<std::size_t>(donated);
      if (!kept(i)) bytes += call.donate(i, owner, per_device);
    }
  if (bytes > 0)
    for (const Device* device : devices_->devices()) device->count_bytes(bytes, false);
  return {};
}

// After a failed launch, marks donated buffers that the plugin did not delete as live again.
void LoadedExecutable::settle_donated(const Call& call) const {
  std::size_t per_device = parameter_types_.size();
  for (std::size_t owner = 0; owner < call.owners(); ++owner)
    for (int donated : signature_.donated) {
      auto i = static_cast<std::size_t>(donated);
      const BufferState& state = call.state(i, owner, per_device);
      if (state.launch_mark == call.mark && state.is_donated() &&
          !call.plugin_says_deleted(i, owner, per_device))
        call.set_life(i, owner, per_device, BufferState::kLive);
    }
}

// Makes the caller the owner of the buffers that the plugin returned.
void LoadedExecutable::give_outputs(const Call& call) const {
  std::size_t outputs = result_types_.size();
  if (call.has_lists) {
    internal::add_references(client_.get(), static_cast<long>(outputs));
    for (const Device* device : devices_->devices()) device->count_bytes(result_bytes_, true);
    for (std::size_t i = 0; i < outputs; ++i)
      call.output_lists[i].set_output(client_.get(), call.number, call.raw_outputs.data() + i,
                                      outputs, result_types_[i], result_sizes_[i], devices_);
    return;
  }
  internal::add_references(client_.get(), static_cast<long>(call.count * outputs));
  std::size_t position = 0;
  for (std::size_t k = 0; k < call.count; ++k)
    for (const ArrayType* type : result_types_) {
      call.output_buffers[position] =
          Buffer(client_.get(), call.raw_outputs[position], type, &device(call, k));
      ++position;
    }
}

}  // namespace meshard::pjrt
