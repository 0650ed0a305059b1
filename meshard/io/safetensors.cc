#include "meshard/io/safetensors.h"

#include <algorithm>
#include <new>
#include <tuple>

#include "meshard/base/cat.h"
#include "meshard/base/json_reader.h"
#include "meshard/base/json_writer.h"
#include "meshard/graph/leaf.h"
#include "meshard/io/internal/read_type.h"

namespace meshard::io {
namespace {

// The format's own reader has the same limit.
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::size_t kDataAlignment = 64;

struct SafetensorsName {
  std::string_view name;
  DType dtype;
};
constexpr SafetensorsName kSafetensorsNames[] = {{"BOOL", DType::bool_},
                                                 {"I8", DType::i8},
                                                 {"I16", DType::i16},
                                                 {"I32", DType::i32},
                                                 {"I64", DType::i64},
                                                 {"U8", DType::u8},
                                                 {"U16", DType::u16},
                                                 {"U32", DType::u32},
                                                 {"U64", DType::u64},
                                                 {"F16", DType::f16},
                                                 {"BF16", DType::bf16},
                                                 {"F32", DType::f32},
                                                 {"F64", DType::f64},
                                                 {"F8_E4M3", DType::f8e4m3fn},
                                                 {"F8_E5M2", DType::f8e5m2},
                                                 {"F8_E8M0", DType::f8e8m0fnu},
                                                 {"F8_E4M3FNUZ", DType::f8e4m3fnuz},
                                                 {"F8_E5M2FNUZ", DType::f8e5m2fnuz},
                                                 {"C64", DType::c64}};

// The dtypes of the format that meshard lacks. Elements follow each other without gaps.
struct PackedDtype {
  std::string_view name;
  std::uint64_t bits;
};
constexpr PackedDtype kPackedDtypes[] = {{"F4", 4}, {"F6_E2M3", 6}, {"F6_E3M2", 6}};

// The number of elements; none if it does not fit.
std::optional<std::uint64_t> count_of(const Dimensions& sizes) {
  return safetensors_bytes(sizes, DType::u8);
}

// The type in bytes of a tensor with these sizes in elements.
TensorType type_in_bytes(const Dimensions& sizes, std::uint64_t bytes) {
  std::uint64_t count = count_of(sizes).value_or(0);
  if (!sizes.empty() && count != 0 && bytes != 0) {
    auto last = static_cast<std::uint64_t>(sizes.back());
    std::uint64_t rows = count / last;
    if (bytes % rows == 0) {
      Dimensions in_bytes = sizes;
      in_bytes.back() = static_cast<std::int64_t>(bytes / rows);
      return {DType::u8, Shape(std::move(in_bytes))};
    }
  }
  return {DType::u8, Shape({static_cast<std::int64_t>(bytes)})};
}

class HeaderReader {
 public:
  explicit HeaderReader(std::string_view place) : place_(place) {}

  Result<SafetensorsHeader> read(std::string_view file) {
    std::uint64_t length = 0;
    if (file.size() < 8) return bad("not a safetensors file: it has only ", file.size(), " bytes");
    for (int i = 7; i >= 0; --i)
      length = length << 8 | static_cast<unsigned char>(file[static_cast<std::size_t>(i)]);
    if (length > kLongestHeader || length > file.size() - 8)
      return bad("not a safetensors file: invalid header size ", length, " in a file of ",
                 file.size(), " bytes");
    std::string_view text = file.substr(8, length);
    if (!text.starts_with('{'))
      return bad("not a safetensors file: the header is not a JSON object");
    SafetensorsHeader header;
    header.data_begin = 8 + length;
    // Parsed tensor by tensor: the parsed values of the whole text would need a hundred times its
    // size.
    MESHARD_RETURN_IF_ERROR(
        read_json_members(text, place_, [&](const std::string& name, const JsonValue& value) {
          return name == "__metadata__" ? read_metadata(value, header.metadata)
                                        : read_entry(name, value, header.tensors);
        }));
    if (Result<void> tiled = check_places(header.tensors, file.size() - header.data_begin); !tiled)
      return tiled.error();
    return header;
  }

 private:
  template <class... Parts>
  Error bad(const Parts&... parts) const {
    return Error(ErrorCode::kInvalidArgument, cat("[", place_, "] ", parts...));
  }

  Result<void> read_metadata(const JsonValue& value, std::map<std::string, std::string>& out) {
    if (!value.is(JsonValue::Kind::kObject)) return bad("__metadata__ is not an object");
    for (const auto& [key, text] : value.members) {
      if (!text.is(JsonValue::Kind::kString))
        return bad("__metadata__ \"", key, "\" is not a string");
      out[key] = text.text;
    }
    return {};
  }

  Result<void> read_entry(const std::string& name, const JsonValue& value,
                          std::vector<SafetensorsEntry>& out) {
    const JsonValue *dtype = value.find("dtype"), *shape = value.find("shape"),
                    *offsets = value.find("data_offsets");
    if (!dtype || !shape || !offsets || value.members.size() != 3 ||
        !dtype->is(JsonValue::Kind::kString) || !shape->is(JsonValue::Kind::kArray) ||
        !offsets->is(JsonValue::Kind::kArray) || offsets->elements.size() != 2)
      return bad("tensor \"", name,
                 "\" must have a dtype, a shape, two data_offsets and nothing else");
    MESHARD_ASSIGN_OR_RETURN(Dimensions sizes, internal::read_sizes(place_, name, *shape));
    std::optional<std::uint64_t> begin = offsets->elements[0].whole_number(),
                                 end = offsets->elements[1].whole_number();
    std::optional<DType> known = dtype_of_safetensors(dtype->text);
    if (!begin || !end || *end < *begin || *end >> 62 != 0 ||
        !fits(dtype->text, known, sizes, *end - *begin))
      return bad("tensor \"", name, "\" of ", dtype->text, Shape(sizes),
                 " does not match its data_offsets, ", offsets->elements[0].text, " to ",
                 offsets->elements[1].text);
    if (known)
      out.push_back({name, {*known, Shape(std::move(sizes))}, *begin, *end});
    else
      out.push_back({name, type_in_bytes(sizes, *end - *begin), *begin, *end, dtype->text, sizes});
    return {};
  }

  // Whether tensors of these sizes have so many bytes. Nothing is known of the elements of a dtype
  // that is neither meshard's nor in the table.
  static bool fits(std::string_view dtype, std::optional<DType> known, const Dimensions& sizes,
                   std::uint64_t bytes) {
    if (known) return safetensors_bytes(sizes, *known) == bytes;
    std::optional<std::uint64_t> count = count_of(sizes);
    if (!count) return false;
    for (const PackedDtype& packed : kPackedDtypes)
      if (packed.name == dtype) return *count >> 58 == 0 && *count * packed.bits == bytes * 8;
    return true;
  }

  // Sorts the tensors by position and checks that they cover the data. Empty tensors come before a
  // nonempty one at the same position.
  Result<void> check_places(std::vector<SafetensorsEntry>& tensors, std::uint64_t bytes) {
    std::sort(tensors.begin(), tensors.end(),
              [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
              });
    std::uint64_t at = 0;
    for (const SafetensorsEntry& tensor : tensors) {
      if (tensor.begin != at)
        return bad("tensor \"", tensor.name, "\" begins at byte ", tensor.begin, " of the data, ",
                   tensor.begin < at ? "inside the preceding tensor, which ends at "
                                     : "after a gap that begins at ",
                   at);
      at = tensor.end;
    }
    if (at != bytes)
      return bad("the tensors have ", at, " bytes, but the file has ", bytes, " bytes of data");
    return {};
  }

  std::string_view place_;
};

}  // namespace

std::string_view safetensors_name(DType dtype) {
  for (const SafetensorsName& each : kSafetensorsNames)
    if (each.dtype == dtype) return each.name;
  return {};
}

std::optional<DType> dtype_of_safetensors(std::string_view name) {
  for (const SafetensorsName& each : kSafetensorsNames)
    if (each.name == name) return each.dtype;
  return {};
}

Result<Dimensions> internal::read_sizes(std::string_view place, const std::string& name,
                                        const JsonValue& sizes) {
  Dimensions found;
  for (const JsonValue& size : sizes.elements) {
    std::optional<std::uint64_t> number = size.whole_number();
    if (!number || *number >> 62 != 0)
      return Error(ErrorCode::kInvalidArgument,
                   cat("[", place, "] tensor \"", name, "\" has an invalid size ", size.text));
    found.push_back(static_cast<std::int64_t>(*number));
  }
  return found;
}

Result<TensorType> internal::read_type(std::string_view place, const std::string& name,
                                       const JsonValue& dtype, const JsonValue& sizes) {
  std::optional<DType> known = dtype_of_safetensors(dtype.text);
  if (!known)
    return Error(ErrorCode::kUnimplemented,
                 cat("[", place, "] tensor \"", name, "\": unsupported dtype ", dtype.text));
  MESHARD_ASSIGN_OR_RETURN(Dimensions found, read_sizes(place, name, sizes));
  return TensorType{*known, Shape(std::move(found))};
}

std::optional<std::uint64_t> safetensors_bytes(const Dimensions& shape, DType dtype) {
  std::uint64_t bytes = size_in_bytes(dtype), others = 1;
  for (std::int64_t size : shape) {
    auto count = static_cast<std::uint64_t>(size);
    if (__builtin_mul_overflow(bytes, count, &bytes)) return {};
    // A size of 0 can hide others that do not fit.
    if (count != 0 && (__builtin_mul_overflow(others, count, &others) || others >> 62 != 0))
      return {};
  }
  if (bytes >> 62 != 0) return {};
  return bytes;
}

Result<SafetensorsHeader> read_safetensors_header(std::string_view file, std::string_view place) {
  try {
    return HeaderReader(place).read(file);
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::kResourceExhausted,
                 cat("[", place, "] not enough memory to read the header"));
  }
}

Result<std::string> write_safetensors_header(std::vector<SafetensorsEntry>& tensors,
                                             const std::map<std::string, std::string>& metadata) {
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return size_in_bytes(a.type.dtype) > size_in_bytes(b.type.dtype);
                   });
  JsonWriter json;
  json.begin_object();
  if (!metadata.empty()) {
    json.key("__metadata__").begin_object();
    for (const auto& [key, value] : metadata) json.member(key, value);
    json.end_object();
  }
  std::uint64_t at = 0;
  std::map<std::string_view, bool> seen{{"__metadata__", true}};
  for (SafetensorsEntry& tensor : tensors) {
    bool as_bytes = !tensor.stored_dtype.empty();
    std::string_view dtype =
        as_bytes ? std::string_view(tensor.stored_dtype) : safetensors_name(tensor.type.dtype);
    if (dtype.empty())
      return Error(ErrorCode::kUnimplemented, cat("[safetensors] tensor \"", tensor.name,
                                                  "\": unsupported dtype ", tensor.type.dtype));
    if (!seen.emplace(tensor.name, true).second)
      return Error(ErrorCode::kInvalidArgument, cat("[safetensors] the tensor name \"", tensor.name,
                                                    "\" is used twice or reserved"));
    tensor.begin = at;
    tensor.end = at += static_cast<std::uint64_t>(tensor.type.bytes());
    json.key(tensor.name).begin_object().member("dtype", dtype).key("shape").begin_array();
    for (std::int64_t size : as_bytes ? tensor.stored_sizes : tensor.type.shape.sizes())
      json.value(size);
    json.end_array().key("data_offsets").begin_array().value(tensor.begin).value(tensor.end);
    json.end_array().end_object();
  }
  json.end_object();
  std::string text = std::move(json).text(), begin(8, '\0');
  text.resize(text.size() + (kDataAlignment - (text.size() + 8) % kDataAlignment) % kDataAlignment,
              ' ');
  for (std::size_t i = 0; i < 8; ++i)
    begin[i] = static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i) & 0xFF);
  return begin + text;
}

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
  if (read_) return read_(box, destination);
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
