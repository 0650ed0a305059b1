#include "meshard/io/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "meshard/base/cat.h"
#include "meshard/io/file.h"
#include "meshard/io/internal/npy_bytes.h"
#include "meshard/io/safetensors.h"
#include "meshard/layout/text_scanner.h"

namespace meshard::io {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";

// The contents of a .npy header.
struct NpyHeader {
  std::string descr;
  bool fortran_order = false;
  Dimensions shape;
};

// Text in single or double quotes, without escapes.
std::string quoted_text(TextScanner& scanner) {
  const std::string_view quote = scanner.accept("'") ? "'" : "\"";
  if (quote == "\"") scanner.expect(quote);
  std::string inside(scanner.rest().substr(0, scanner.rest().find(quote)));
  if (inside.find('\\') != std::string::npos) scanner.fail("unexpected escape");
  scanner.expect(inside);
  scanner.expect(quote);
  return inside;
}

Dimensions npy_shape(TextScanner& scanner) {
  Dimensions shape;
  scanner.expect("(");
  while (!scanner.accept(")")) {
    shape.push_back(scanner.integer());
    if (shape.back() < 0) scanner.fail("negative size");
    if (!scanner.accept(",") && !scanner.peek(")")) scanner.fail("expected `,`");
  }
  return shape;
}

// Reads the literal of a Python dict with the keys descr, fortran_order and shape, in any order.
NpyHeader npy_header(TextScanner& scanner) {
  NpyHeader header;
  std::set<std::string> seen;
  scanner.expect("{");
  while (!scanner.accept("}")) {
    std::string key = quoted_text(scanner);
    scanner.expect(":");
    if (!seen.insert(key).second) scanner.fail("repeated key");
    if (key == "descr") {
      header.descr = quoted_text(scanner);
    } else if (key == "fortran_order") {
      header.fortran_order = scanner.accept("True");
      if (!header.fortran_order) scanner.expect("False");
    } else if (key == "shape") {
      header.shape = npy_shape(scanner);
    } else {
      scanner.fail("unknown key");
    }
    if (!scanner.accept(",") && !scanner.peek("}")) scanner.fail("expected `,`");
  }
  if (seen.size() != 3) scanner.fail("missing key");
  return header;
}

struct NpyName {
  std::string_view kind_and_size;
  DType dtype;
};
constexpr NpyName kNpyNames[] = {{"b1", DType::bool_}, {"i1", DType::i8},   {"i2", DType::i16},
                                 {"i4", DType::i32},   {"i8", DType::i64},  {"u1", DType::u8},
                                 {"u2", DType::u16},   {"u4", DType::u32},  {"u8", DType::u64},
                                 {"f2", DType::f16},   {"f4", DType::f32},  {"f8", DType::f64},
                                 {"c8", DType::c64},   {"c16", DType::c128}};

Error bad_npy(const std::string& path, std::string_view what) {
  return Error(ErrorCode::kInvalidArgument, cat("[npy] ", path, ": ", what));
}

// Converts an array from column-major (first dimension fastest) to row-major order.
HostArray row_major(const HostArray& columns, const Shape& shape) {
  HostArray out = HostArray::uninitialized({columns.dtype(), shape});
  std::size_t element = size_in_bytes(columns.dtype());
  std::byte* to = out.mutable_bytes();
  Dimensions index(static_cast<std::size_t>(shape.rank()), 0), strides = index;
  std::int64_t stride = 1, from = 0;
  for (int d = 0; d < shape.rank(); ++d) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= shape[d];
  }
  for (std::int64_t i = 0; i < shape.size(); ++i, to += element) {
    std::memcpy(to, columns.bytes() + static_cast<std::size_t>(from) * element, element);
    for (int d = shape.rank() - 1; d >= 0; --d) {
      auto at = static_cast<std::size_t>(d);
      from += strides[at];
      if (++index[at] < shape[d]) break;
      from -= index[at] * strides[at];
      index[at] = 0;
    }
  }
  return out;
}

HostArray swapped_bytes(const HostArray& array) {
  HostArray out = HostArray::copy_of(array.type(), array.bytes());
  std::byte* data = out.mutable_bytes();
  std::size_t element = size_in_bytes(real_dtype(array.dtype()));  // the parts of a complex number
  for (std::byte* end = data + array.size_in_bytes(); data != end; data += element)
    std::reverse(data, data + element);
  return out;
}

// Finds the header's text. Its length takes 2 bytes in version 1 and 4 in later versions.
std::optional<std::string_view> npy_header_text(std::string_view bytes) {
  if (!bytes.starts_with(kNpyMagic) || bytes.size() < 10) return {};
  auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(bytes[i])}; };
  std::size_t version = byte(6), begin = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || bytes.size() < begin) return {};
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - begin) return {};
  return bytes.substr(begin, length);
}

// The array that a file begins with its description of, and where its bytes are.
struct NpyContents {
  NpyHeader header;
  DType dtype = DType::f32;
  char order = '<';
  std::size_t offset = 0;

  // The type of the bytes in memory.
  TensorType stored() const {
    Dimensions sizes = header.shape;
    if (header.fortran_order) std::reverse(sizes.begin(), sizes.end());
    return {dtype, Shape(sizes)};
  }
  HostArray in_order(HostArray array) const {
    if (order == '>') array = swapped_bytes(array);
    if (header.fortran_order && header.shape.size() > 1)
      return row_major(array, Shape(header.shape));
    return array;
  }
};

Result<NpyContents> npy_contents(std::string_view bytes, const std::string& path) {
  std::optional<std::string_view> text = npy_header_text(bytes);
  if (!text) return bad_npy(path, "not a .npy file");
  Result<NpyHeader> header = parse_whole("npy", *text, npy_header);
  if (!header) return bad_npy(path, "the header cannot be read");
  char order = header->descr.empty() ? '\0' : header->descr[0];
  const auto* name =
      std::find_if(std::begin(kNpyNames), std::end(kNpyNames), [&](const NpyName& each) {
        return std::string_view(header->descr).substr(order != '\0') == each.kind_and_size;
      });
  if (std::string_view("<>|=").find(order) == std::string_view::npos || name == std::end(kNpyNames))
    return Error(ErrorCode::kUnimplemented,
                 cat("[npy] ", path, ": unsupported dtype '", header->descr,
                     "'; expected booleans, integers, f16, f32, f64 or complex numbers"));
  auto offset = static_cast<std::size_t>(text->data() + text->size() - bytes.data());
  std::optional<std::uint64_t> needed = safetensors_bytes(header->shape, name->dtype);
  if (!needed || *needed != bytes.size() - offset)
    return bad_npy(path,
                   cat("the header is followed by ", bytes.size() - offset,
                       " bytes, which do not match its dtype and shape ", Shape(header->shape)));
  return NpyContents{*std::move(header), name->dtype, order, offset};
}

// What comes before the bytes of an array.
Result<std::string> npy_begin(const HostArray& array, const std::string& path) {
  const auto* name = std::find_if(std::begin(kNpyNames), std::end(kNpyNames),
                                  [&](const NpyName& each) { return each.dtype == array.dtype(); });
  if (name == std::end(kNpyNames))
    return Error(
        ErrorCode::kUnimplemented,
        cat("[npy] cannot write ", array.dtype(), " to ", path,
            ": only booleans, integers, f16, f32, f64 and complex numbers are supported; convert "
            "the array, or write bf16 and 8-bit floats to a safetensors file"));
  std::string shape;
  for (std::int64_t size : array.shape()) shape += cat(size, ", ");
  if (array.rank() > 1) shape.resize(shape.size() - 2);
  std::string header = cat("{'descr': '", size_in_bytes(array.dtype()) == 1 ? "|" : "<",
                           name->kind_and_size, "', 'fortran_order': False, 'shape': (",
                           array.rank() == 1 ? shape.substr(0, shape.size() - 1) : shape, "), }");
  // The data begins at a multiple of 64, after a line break.
  std::size_t length = header.size() + 1;
  length += (64 - (length + 10) % 64) % 64;
  if (length > 0xFFFF)
    return Error(ErrorCode::kUnimplemented, cat("[npy] too many dimensions: ", array.type()));
  header.resize(length - 1, ' ');
  header += '\n';
  return cat(kNpyMagic, std::string{'\1', '\0'}, static_cast<char>(length & 0xFF),
             static_cast<char>(length >> 8), header);
}

}  // namespace

Result<HostArray> internal::npy_from_bytes(std::string_view bytes, const std::string& place) {
  MESHARD_ASSIGN_OR_RETURN(NpyContents contents, npy_contents(bytes, place));
  TensorType type = contents.stored();
  const char* data = bytes.data() + contents.offset;
  if (type.dtype != DType::bool_) return contents.in_order(HostArray::copy_of(type, data));
  HostArray array = HostArray::uninitialized(type);  // nonzero bytes become 1
  for (std::int64_t i = 0; i < array.size(); ++i)
    array.mutable_bytes()[i] = std::byte{static_cast<unsigned char>(data[i] != 0)};
  return contents.in_order(std::move(array));
}

Result<std::string> internal::npy_bytes(const HostArray& array, const std::string& place) {
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, npy_begin(array, place));
  bytes.append(reinterpret_cast<const char*>(array.bytes()),
               static_cast<std::size_t>(array.size_in_bytes()));
  return bytes;
}

Result<HostArray> load_npy(const std::string& path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file) return file.error();
  std::string_view bytes(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  MESHARD_ASSIGN_OR_RETURN(NpyContents contents, npy_contents(bytes, path));
  MESHARD_ASSIGN_OR_RETURN(HostArray array, file->array(contents.stored(), contents.offset));
  return contents.in_order(std::move(array));
}

Result<void> save_npy(const std::string& path, const HostArray& array) {
  MESHARD_ASSIGN_OR_RETURN(std::string begin, npy_begin(array, path));
  auto data = static_cast<std::size_t>(array.size_in_bytes());
  Result<NewFile> file = NewFile::create(path, begin.size() + data);
  if (!file) return file.error();
  std::memcpy(file->data(), begin.data(), begin.size());
  if (data > 0) std::memcpy(file->data() + begin.size(), array.bytes(), data);
  return file->commit();
}

}  // namespace meshard::io
