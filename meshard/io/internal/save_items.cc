#include "meshard/io/internal/save_items.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "meshard/array/slice.h"
#include "meshard/base/cat.h"
#include "meshard/graph/evaluator.h"
#include "meshard/io/safetensors.h"
#include "meshard/runtime/gather.h"

namespace meshard::io::internal {
namespace {

// The type without its first `stacked` dimensions.
TensorType type_of_one(const TensorType& type, std::size_t stacked) {
  Dimensions sizes;
  for (std::size_t d = stacked; d < static_cast<std::size_t>(type.rank()); ++d)
    sizes.push_back(type.shape[static_cast<int>(d)]);
  return {type.dtype, Shape(std::move(sizes))};
}

// Checks that all have types, and computes those that are recorded.
void compute_all(std::span<const NamedTensors> tensors, SourceLocation where) {
  std::vector<Tensor> values;
  for (const NamedTensors& each : tensors) {
    (void)each.tensor.type(where);
    if (!each.names.empty()) values.push_back(each.tensor);
  }
  compute(values, where);
}

std::string description(const NamedTensors& each) {
  std::optional<Sharding> sharding = each.tensor.stored_sharding();
  return cat('"', each.names[0], '"',
             each.names.size() > 1 ? cat(" to \"", each.names.back(), '"') : "", ", ",
             type_of_one(each.tensor.type(), each.stacked),
             sharding ? cat(", over ", *sharding) : "");
}

// The part of a value that this process holds.
SourcePart local_part(const Tensor& tensor, const Box& box, SourceLocation where) {
  if (tensor.shape().size() == 0) return {HostArray::zeros(tensor.type()), box};
  for (LocalShard& shard : local_shards(tensor, where))
    if (shard.box() == box) return SourcePart(std::move(shard));
  return {tensor.to_host(where), box};  // not on a device, or each process has it
}

// Adds what the index says of the entries `names` of one part, whose elements are those of `box`
// in each of the tensors.
void add_to_index(CheckpointIndex& index, const std::string& name, const std::string& file,
                  const TensorType& type, const Box& box) {
  if (box == whole_box(type.shape)) {
    index.whole[name] = file;
    return;
  }
  CheckpointIndex::Split& split = index.split[name];
  split.type = type;
  split.parts[to_string(box)] = {box, file};
}

// The part of a tensor that is one item: the named tensors which its first dimensions select, and
// the same part of each.
SaveItem item_of_part(const NamedTensors& each, SourcePart part, const std::string& file,
                      CheckpointIndex& index) {
  const TensorType& whole = each.tensor.type();
  TensorType one = type_of_one(whole, each.stacked);
  index.total_size +=
      static_cast<std::uint64_t>(box_shape(part.box()).size()) * size_in_bytes(whole.dtype);
  Box layers, inner;
  for (std::size_t d = 0; d < part.box().size(); ++d)
    (d < each.stacked ? layers : inner).push_back(part.box()[d]);
  SaveItem item;
  item.each = {whole.dtype, box_shape(inner)};
  item.all = {whole.dtype, box_shape(part.box())};
  bool is_split = inner != whole_box(one.shape);
  for (std::int64_t number : numbers_in(layers, whole.shape.sizes())) {
    const std::string& name = each.names[static_cast<std::size_t>(number)];
    item.names.push_back(is_split ? piece_name(name, to_string(inner)) : name);
    add_to_index(index, name, file, one, inner);
  }
  Box place = whole_box(item.all.shape);
  item.sources.push_back({std::move(part), std::move(place)});
  return item;
}

}  // namespace

void SaveItems::take(SourceLocation where) {
  for (SaveItem& item : items)
    for (SaveItem::Source& source : item.sources) source.part.take(where);
}

SaveItems items_of_one_file(std::span<const NamedTensors> tensors, SourceLocation where) {
  compute_all(tensors, where);
  SaveItems out;
  for (const NamedTensors& each : tensors) {
    if (each.names.empty()) continue;
    const TensorType& type = each.tensor.type();
    SaveItem item{each.names, type_of_one(type, each.stacked), type, {}};
    std::vector<LocalShard> shards = local_shards(each.tensor, where);
    if (is_across_processes(each.tensor)) {
      // A replicated value is whole in each of its processes.
      std::erase_if(shards, [&](const LocalShard& s) { return s.box() != whole_box(type.shape); });
      if (shards.empty())
        throw Error(ErrorCode::kInvalidArgument,
                    cat("[io] parts of ", description(each),
                        " are in other processes, so this process cannot save it alone"),
                    where);
      shards.resize(1);
    } else {
      std::erase_if(shards, [](const LocalShard& s) { return s.replica_id() != 0; });
    }
    for (LocalShard& shard : shards) {
      Box box = shard.box();
      item.sources.push_back({SourcePart(std::move(shard)), std::move(box)});
    }
    if (shards.empty()) {
      Box whole = whole_box(type.shape);
      item.sources.push_back({SourcePart(each.tensor.to_host(where), whole), whole});
    }
    out.items.push_back(std::move(item));
  }
  return out;
}

SaveItems items_of_process(std::span<const NamedTensors> tensors, int rank, const std::string& file,
                           SourceLocation where) {
  compute_all(tensors, where);
  SaveItems out;
  std::map<int, std::int64_t> bytes;  // that each process writes
  for (const NamedTensors& each : tensors) {
    if (each.names.empty()) continue;
    out.tensors.push_back(description(each));
    const TensorType& type = each.tensor.type();
    for (const HeldPart& part : held_parts(each.tensor, where)) {
      int owner = part.processes[0];
      for (int process : part.processes)
        if (bytes[process] < bytes[owner]) owner = process;
      bytes[owner] +=
          box_shape(part.box).size() * static_cast<std::int64_t>(size_in_bytes(type.dtype));
      if (owner == rank)
        out.items.push_back(
            item_of_part(each, local_part(each.tensor, part.box, where), file, out.index));
    }
  }
  return out;
}

Result<NewFile> write_items(const std::string& path, const SaveItems& items,
                            const std::map<std::string, std::string>& metadata,
                            SourceLocation where) {
  std::vector<SafetensorsEntry> entries;
  std::map<std::string_view, const SaveItem*> by_first_name;
  for (const SaveItem& item : items.items) {
    for (const std::string& name : item.names) entries.push_back({name, item.each, 0, 0});
    by_first_name[item.names[0]] = &item;
  }
  MESHARD_ASSIGN_OR_RETURN(std::string header, write_safetensors_header(entries, metadata));
  std::uint64_t bytes = header.size() + (entries.empty() ? 0 : entries.back().end);
  Result<NewFile> file = NewFile::create(path, bytes);
  if (!file) return file;
  std::memcpy(file->data(), header.data(), header.size());
  for (const SafetensorsEntry& entry : entries) {
    auto found = by_first_name.find(entry.name);
    if (found == by_first_name.end()) continue;
    const SaveItem& item = *found->second;
    std::byte* data = file->data() + header.size() + entry.begin;
    for (const SaveItem::Source& source : item.sources) {
      if (box_shape(source.place).size() == 0) continue;
      HostArray part = source.part.read(where);
      plan_scatter(part.bytes(), data, item.all.shape, source.place, size_in_bytes(item.all.dtype))
          .run();
    }
  }
  return file;
}

}  // namespace meshard::io::internal
