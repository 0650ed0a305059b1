#include "meshard/io/safetensors.h"

#include "meshard/array/box_overlap.h"
#include "meshard/base/cat.h"
#include "meshard/graph/leaf.h"

namespace meshard::io {
namespace {

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Error no_tensor(std::string_view name, std::string_view path, std::size_t count) {
  return Error(ErrorCode::kNotFound,
               cat("[io] no tensor \"", name, "\" in ", path, " (number of tensors: ", count, ")"));
}

}  // namespace

Result<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped) return mapped.error();
  Result<SafetensorsHeader> header = read_safetensors_header(text_of(*mapped), path);
  if (!header) return header.error();
  SafetensorsFile file(*std::move(mapped));
  file.header_ = std::make_shared<const SafetensorsHeader>(*std::move(header));
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < file.entries().size(); ++i) by_name[file.entries()[i].name] = i;
  file.by_name_ =
      std::make_shared<const std::map<std::string_view, std::size_t>>(std::move(by_name));
  return file;
}

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  auto found = by_name_->find(name);
  return found == by_name_->end() ? nullptr : &entries()[found->second];
}

Result<HostArray> SafetensorsFile::array(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (!entry) return no_tensor(name, path(), entries().size());
  return file_.array(entry->type, header_->data_begin + entry->begin);
}

std::optional<Result<HostArray>> SafetensorsFile::consecutive(
    std::span<const std::string> names) const {
  const SafetensorsEntry *first = find(names[0]), *last = first;
  for (const std::string& name : names) {
    const SafetensorsEntry* entry = find(name);
    if (!entry || entry->type != first->type) return std::nullopt;
    if (entry != first && entry->begin != last->end) return std::nullopt;
    last = entry;
  }
  Dimensions sizes{static_cast<std::int64_t>(names.size())};
  for (std::int64_t size : first->type.shape) sizes.push_back(size);
  return file_.array({first->type.dtype, Shape(std::move(sizes))},
                     header_->data_begin + first->begin);
}

Result<Tensor> SafetensorsFile::tensor(std::string_view name, SourceLocation where) const {
  Result<HostArray> found = array(name);
  if (!found) return found.error().at(where);
  return from_host(*std::move(found), where);
}

Result<HostArray> StoredTensor::read(const Box& box) const {
  for (const Part& part : parts_)
    if (part.box == box) return part.file.array(part.name);
  HostArray array = HostArray::uninitialized({type_.dtype, box_shape(box)});
  if (array.size() > 0) MESHARD_RETURN_IF_ERROR(read_into(box, array.mutable_bytes()));
  return array;
}

Result<void> StoredTensor::read_into(const Box& box, std::byte* destination) const {
  for (const Part& part : parts_) {
    std::optional<Box> both = overlap(part.box, box);
    if (!both) continue;
    MESHARD_ASSIGN_OR_RETURN(HostArray source, part.file.array(part.name));
    plan_copy(source.bytes(), source.shape(), relative_to(part.box, *both), destination,
              box_shape(box), relative_to(box, *both), size_in_bytes(type_.dtype))
        .run();
  }
  return {};
}

}  // namespace meshard::io
