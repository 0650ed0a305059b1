// Reads values from devices, and waits for them.
// Tested in meshard/runtime/device_array_test.cc.
#include <optional>
#include <vector>

#include "meshard/array/slice.h"
#include "meshard/base/stall_report.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/copy_pool.h"
#include "meshard/runtime/internal/event_recorder.h"

namespace meshard {
namespace {

Shape padded_shape_of(const pjrt::BufferView& buffer) { return Shape(buffer.dimensions()); }

void begin_read(internal::TransferSpan& span, const pjrt::BufferView& buffer, std::uint64_t bytes,
                SourceLocation where) {
  span.begin("read", buffer.type().to_string(), buffer.device(), bytes, where);
}

}  // namespace

HostArray DeviceArray::padded_shard(std::size_t i, SourceLocation where) const {
  check_live(where);
  internal::WaitPlace place(where);
  pjrt::BufferView buffer = buffers_[i];
  TensorType padded{type().dtype, padded_shape_of(buffer)};
  HostArray array = HostArray::uninitialized(padded);
  internal::TransferSpan span;
  if (internal::records_events())
    begin_read(span, buffer, static_cast<std::uint64_t>(padded.bytes()), where);
  Result<void> read = buffer.read(
      std::span(array.mutable_bytes(), static_cast<std::size_t>(array.size_in_bytes())));
  if (!read.ok()) {
    platforms_.handle_failure();
    throw read.error().at(where).with_note(cat("while reading ", type(), " from device ",
                                               buffer.device().id(),
                                               buffer.device().of_platform()));
  }
  span.end();
  internal::count(internal::counters().buffers_read);
  internal::count(internal::counters().bytes_read, static_cast<std::uint64_t>(padded.bytes()));
  return array;
}

HostArray DeviceArray::shard(std::size_t i, SourceLocation where) const {
  HostArray padded = padded_shard(i, where);
  Shape wanted = box_shape(box(i));
  if (padded.shape() == wanted) return padded;
  return padded.slice(whole_box(wanted), where);
}

HostArray DeviceArray::to_host(SourceLocation where) const {
  check_live(where);
  HostArray array = HostArray::uninitialized(type());
  gather_into(array.mutable_bytes(), CopyTarget::kFreshPages, where);
  return array;
}

namespace {

// The bytes of shards in host memory, valid for its lifetime.
class ShardBytes {
 public:
  ShardBytes() = default;
  ~ShardBytes() { (void)await(); }  // a running fetch writes into its block
  ShardBytes(const ShardBytes&) = delete;
  ShardBytes& operator=(const ShardBytes&) = delete;

  /// Returns the bytes of one shard. Memory that the host cannot read is fetched into a block per
  /// shard, all shards at once; those bytes are valid after await().
  Result<const std::byte*> add(const pjrt::BufferView& buffer, DType dtype) {
    if (Result<pjrt::HostView> shown = buffer.host_view(); shown.ok()) {
      views_.push_back(*std::move(shown));
      return views_.back().bytes().data();
    } else if (shown.error().code() != ErrorCode::kUnimplemented) {
      return shown.error();
    }
    HostArray& block =
        blocks_.emplace_back(HostArray::uninitialized({dtype, padded_shape_of(buffer)}));
    fetched_.reserve(fetched_.size() + 1);  // no exception between the fetch and its event
    MESHARD_ASSIGN_OR_RETURN(
        pjrt::Event fetch,
        buffer.copy_to_host(
            std::span(block.mutable_bytes(), static_cast<std::size_t>(block.size_in_bytes()))));
    fetched_.push_back(std::move(fetch));
    return block.bytes();
  }
  /// Waits for all fetches, even after one fails. @error the last one's
  Result<void> await() {
    Result<void> outcome;
    for (const pjrt::Event& event : fetched_)
      if (Result<void> done = event.await(); !done.ok()) outcome = std::move(done);
    fetched_.clear();
    return outcome;
  }

 private:
  std::vector<pjrt::HostView> views_;
  std::vector<HostArray> blocks_;
  std::vector<pjrt::Event> fetched_;
};

}  // namespace

void DeviceArray::read_into(void* destination, SourceLocation where) const {
  gather_into(destination, CopyTarget::kUsedPages, where);
}

void DeviceArray::gather_into(void* destination, CopyTarget target, SourceLocation where) const {
  check_live(where);
  internal::WaitPlace place(where);
  if (!has_all_parts())
    throw Error(ErrorCode::kUnimplemented,
                cat("[tensor] parts of the value ", type(), " on ", placement(),
                    " are not in this process, although their devices are"),
                where);
  internal::HostSpan gather;
  std::vector<internal::TransferSpan> reads;
  if (internal::records_events()) gather.begin("gather", type().to_string(), where);
  gather.set_bytes(static_cast<std::uint64_t>(type().bytes()));
  std::size_t element_bytes = meshard::size_in_bytes(type().dtype);
  ShardBytes shards;
  std::vector<StridedCopy> copies;
  std::optional<Error> failed;
  auto add = [&](const pjrt::BufferView& buffer, const Box& part) {
    Shape extents = box_shape(part);
    if (extents.size() == 0 || failed) return;
    auto bytes = static_cast<std::uint64_t>(extents.size()) * element_bytes;
    if (gather.begun()) begin_read(reads.emplace_back(), buffer, bytes, where);
    Result<const std::byte*> source = shards.add(buffer, type().dtype);
    if (!source.ok()) {
      failed = source.error();
      return;
    }
    copies.push_back(plan_copy(*source, padded_shape_of(buffer), whole_box(extents), destination,
                               type().shape, part, element_bytes));
    internal::count(internal::counters().buffers_read);
    internal::count(internal::counters().bytes_read, bytes);
  };
  for (std::size_t i : distinct_shards()) add(buffers_[i], box(i));
  if (Result<void> fetched = shards.await(); !fetched.ok()) failed = fetched.error();
  if (failed) {
    platforms_.handle_failure();
    throw failed->at(where).with_note(cat("while reading ", type(), " from ", placement()));
  }
  CopyPool::get().run(copies, target);
  for (internal::TransferSpan& read : reads) read.end();
}

void DeviceArray::wait(SourceLocation where) const {
  check_live(where);
  internal::WaitPlace place(where);
  if (buffers_.await_launch()) return;
  // Wait for all buffers, even after one failed: nothing is running when this returns.
  std::optional<Error> failed;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    pjrt::BufferView buffer = buffers_[i];
    Result<void> ready = buffer.await_ready();
    if (!ready.ok() && !failed)
      failed = ready.error().at(where).with_note(cat("while waiting for ", type(), " on device ",
                                                     buffer.device().id(),
                                                     buffer.device().of_platform()));
  }
  if (failed) {
    platforms_.handle_failure();
    throw *failed;
  }
}

}  // namespace meshard
