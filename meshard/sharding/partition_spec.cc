#include "meshard/sharding/partition_spec.h"

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"
#include "meshard/layout/text_scanner.h"

namespace meshard {

std::string DimensionSpec::to_string() const {
  if (axes_.empty()) return is_open_ ? "unconstrained" : "none";
  if (axes_.size() == 1 && !is_open_) return axes_[0].to_string();
  return cat('{', join(axes_, ", "), is_open_ ? ", unconstrained}" : "}");
}

DimensionSpec DimensionSpec::read(TextScanner& scanner) {
  if (scanner.accept("none")) return none;
  if (scanner.accept("unconstrained")) return unconstrained;
  if (!scanner.accept("{")) return AxisRef::read(scanner);
  AxisList axes;
  bool is_open = false;
  scanner.list("}", [&] {
    if (is_open) scanner.fail("`unconstrained` must be the last entry");
    if (scanner.accept("unconstrained"))
      is_open = true;
    else
      axes.push_back(AxisRef::read(scanner));
  });
  return DimensionSpec(std::move(axes), is_open);
}

std::size_t DimensionSpec::hash() const {
  std::size_t seed = is_open_ ? 2 : 1;
  for (const AxisRef& axis : axes_) seed = hash_combine(seed, axis.hash());
  return seed;
}

std::string PartitionSpec::to_string() const { return cat("P(", join(dimensions_, ", "), ')'); }

PartitionSpec PartitionSpec::read(TextScanner& scanner) {
  scanner.expect("P");
  scanner.expect("(");
  std::vector<DimensionSpec> dimensions;
  scanner.list(")", [&] { dimensions.push_back(DimensionSpec::read(scanner)); });
  return PartitionSpec(std::move(dimensions));
}

Result<PartitionSpec> PartitionSpec::parse(std::string_view text) {
  return parse_whole("spec", text, [](TextScanner& scanner) { return read(scanner); });
}

std::size_t PartitionSpec::hash() const {
  std::size_t seed = dimensions_.size();
  for (const DimensionSpec& dimension : dimensions_) seed = hash_combine(seed, dimension.hash());
  return seed;
}

}  // namespace meshard
