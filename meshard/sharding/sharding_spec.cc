#include "meshard/sharding/sharding_spec.h"

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/layout/text_scanner.h"
#include "meshard/sharding/check_even.h"

namespace meshard {

ShardingSpec::ShardingSpec(Mesh mesh, const PartitionSpec& spec, SourceLocation where)
    : sharding_(std::move(mesh), spec, where) {}

ShardingSpec ShardingSpec::minibatch(Mesh mesh, const PartitionSpec& spec, SourceLocation where) {
  ShardingSpec result(std::move(mesh), spec, where);
  const Sharding& sharding = result.sharding_;
  std::int64_t devices = sharding.mesh().size();
  if (sharding.rank() == 0 || sharding.num_tiles(0) != devices)
    throw_invalid(where, "[sharding] a minibatch must be split along dimension 0 over all ",
                  devices, " devices of ", sharding.mesh(), "; ", spec, " splits it into ",
                  sharding.num_tiles(0));
  result.is_minibatch_ = true;
  return result;
}

Sharding ShardingSpec::sharding(IntView dims, SourceLocation where) const {
  Sharding result = sharding_.with_rank(dims.size(), where);
  if (is_minibatch_ && dims[0] % mesh().size() != 0)
    throw_invalid(where, "[sharding] a minibatch of ", dims[0], " rows, shape (", join(dims, ","),
                  "), cannot be split evenly over the ", mesh().size(), " devices of ", mesh());
  check_even(result, dims, where);
  return result;
}

std::optional<Sharding> ShardingSpec::find_sharding(IntView dims) const {
  if (!can_apply(dims.size())) return std::nullopt;
  if (is_minibatch_ && dims[0] % mesh().size() != 0) return std::nullopt;
  Sharding result = sharding_.with_rank(dims.size());
  if (refused_dimension(result, dims)) return std::nullopt;
  return result;
}

std::string ShardingSpec::to_string() const {
  return cat("ShardingSpec(", mesh(), ", ", spec(), is_minibatch_ ? ", minibatch)" : ")");
}

Result<ShardingSpec> ShardingSpec::parse(std::string_view text) {
  return parse_whole("sharding_spec", text, [](TextScanner& scanner) {
    scanner.expect("ShardingSpec(");
    Mesh mesh = Mesh::read(scanner);
    scanner.expect(",");
    PartitionSpec spec = PartitionSpec::read(scanner);
    bool minibatch = scanner.accept(",");
    if (minibatch) scanner.expect("minibatch");
    scanner.expect(")");
    return minibatch ? ShardingSpec::minibatch(std::move(mesh), spec, {})
                     : ShardingSpec(std::move(mesh), spec, {});
  });
}

}  // namespace meshard
