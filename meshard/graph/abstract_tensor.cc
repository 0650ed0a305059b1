#include "meshard/graph/abstract_tensor.h"

#include "meshard/base/cat.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"

namespace meshard {
namespace {

class AbstractStorage final : public Storage {
 public:
  AbstractStorage(TensorType type, std::optional<Sharding> sharding, SourceLocation made)
      : Storage(Kind::kAbstract),
        type_(std::move(type)),
        sharding_(std::move(sharding)),
        made_(made) {}

  const Sharding* sharding() const override { return sharding_ ? &*sharding_ : nullptr; }
  [[noreturn]] HostArray to_host(SourceLocation where) const override {
    throw Error(ErrorCode::kFailedPrecondition,
                cat("[abstract_tensor] ", type_, made_.known() ? cat(" made at ", made_) : "",
                    " is abstract: it has a type and a sharding, and no value"),
                where);
  }
  std::string placement() const override { return "nowhere (abstract)"; }

 private:
  TensorType type_;
  std::optional<Sharding> sharding_;
  SourceLocation made_;
};

}  // namespace

Tensor abstract_tensor(TensorType type, std::optional<Sharding> sharding, SourceLocation where) {
  where = effective_source(where);
  if (sharding) {
    auto rank = static_cast<std::size_t>(type.rank());
    if (sharding->rank() > rank)
      throw_invalid(where, "[abstract_tensor] ", sharding->spec(), " describes ", sharding->rank(),
                    " dimensions, ", type, " has ", rank);
    if (sharding->rank() < rank) sharding = sharding->with_rank(rank, where);
  }
  return make_array(type, make_storage<AbstractStorage>(type, std::move(sharding), where), where);
}

Tensor abstract_tensor(Shape shape, DType dtype, SourceLocation where) {
  return abstract_tensor(TensorType{dtype, std::move(shape)}, std::nullopt, where);
}

Tensor abstract_tensor(Shape shape, DType dtype, const Mesh& mesh, const PartitionSpec& spec,
                       SourceLocation where) {
  return abstract_tensor(TensorType{dtype, std::move(shape)},
                         Sharding(mesh, spec, effective_source(where)), where);
}

bool is_abstract(const Tensor& tensor) {
  const Storage* storage = tensor.defined() ? tensor.value().storage() : nullptr;
  return storage && storage->kind() == Storage::Kind::kAbstract;
}

}  // namespace meshard
