#include "meshard/runtime/internal/placed_constants.h"

#include <cstring>

#include "meshard/graph/sharding_mark.h"
#include "meshard/ops/constant.h"
#include "meshard/ops/definition/attributes.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/runtime/internal/fabric.h"
#include "meshard/runtime/internal/host_to_device.h"
#include "meshard/runtime/nan_check.h"
#include "meshard/sharding/open_dimensions.h"

namespace meshard {
namespace {

// Devices use larger host arrays in place.
constexpr std::int64_t kMostConstantBytes = (std::int64_t{64} << 10) - 1;

// The operand of a node that has one and passes its elements on, in any number.
Value without(const Value& value, bool OpTraits::*trait) {
  return value->op().traits.*trait && value->operands().size() == 1 ? value->operands()[0] : value;
}

// A constant of the program, or a number that the program takes as an argument, as it does C++
// numbers with a fraction.
std::optional<HostArray> known_array(const Value& value) {
  if (&value->op() == &constant_op) return value->attributes_as<ConstantAttributes>().value;
  const Storage* storage = value.storage();
  if (!storage || storage->kind() != Storage::Kind::kHost || value.type().rank() != 0)
    return std::nullopt;
  return storage->to_host(value->where());
}

HostArray repeated(const HostArray& number, const TensorType& type) {
  HostArray all = HostArray::uninitialized(type);
  auto bytes = static_cast<std::size_t>(number.size_in_bytes());
  for (std::byte *to = all.mutable_bytes(), *end = to + all.size_in_bytes(); to != end; to += bytes)
    std::memcpy(to, number.bytes(), bytes);
  return all;
}

// The elements of a recorded value that is a constant, or one number repeated, such as
// `zeros(shape)` and `full(shape, 0.5)`, marked with a sharding or not. None for other values, and
// for larger ones, which devices fill faster.
std::optional<HostArray> small_constant(const Value& value) {
  if (value->annotations() || value.type().bytes() > kMostConstantBytes) return std::nullopt;
  Value source = without(without(value, &OpTraits::marks_sharding), &OpTraits::repeats_elements);
  std::optional<HostArray> array = known_array(source);
  if (!array || array->shape() == value.type().shape) return array;
  if (array->shape().rank() != 0) return std::nullopt;
  return repeated(*array, value.type());
}

// Null: the program would run in several processes.
const pjrt::Client* client_of(Runtime& runtime, const std::optional<Mesh>& mesh,
                              SourceLocation where) {
  const pjrt::Client& client =
      mesh ? runtime.platforms.client(*mesh, where) : runtime.platforms.client(where);
  return runtime.platforms.fabric(client).is_shared() ? nullptr : &client;
}

}  // namespace

std::optional<std::vector<StoragePtr>> placed_constants(Runtime& runtime, const Stage& stage,
                                                        SourceLocation where) {
  std::vector<HostArray> arrays;
  for (const Value& result : stage.results) {
    std::optional<Sharding> sharding = marked_sharding(result);
    if (sharding.has_value() != stage.mesh.has_value() ||
        (sharding && (has_open_dimensions(*sharding) || !sharding->unreduced_axes().empty())))
      return std::nullopt;
    std::optional<HostArray> array = small_constant(result);
    if (!array) return std::nullopt;
    arrays.push_back(*std::move(array));
  }
  const pjrt::Client* client = checks_nans() ? nullptr : client_of(runtime, stage.mesh, where);
  if (!client) return std::nullopt;
  std::vector<StoragePtr> placed;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    placed.push_back(
        stage.mesh ? place(runtime.platforms, arrays[i], *marked_sharding(stage.results[i]), where)
                   : place(runtime.platforms, *client, arrays[i], *client->addressable_devices()[0],
                           where));
  return placed;
}

}  // namespace meshard
