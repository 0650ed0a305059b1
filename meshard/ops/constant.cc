#include "meshard/ops/constant.h"

#include <numeric>
#include <utility>

#include "meshard/ops/definition/define.h"

namespace meshard {

extern constinit const OpDef constant_op = {
    .name = "constant",
    .operands = "",
    .doc = "A value that is part of the program.",
    .example = "constant(HostArray::scalar(2.0f))",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          results.push_back(call.as<ConstantAttributes>().value.type());
        },
    .sharding_rule = element_wise::rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          out.writer.constant(out.results[0].value, call.as<ConstantAttributes>().value,
                              out.location);
        },
    .vjp = element_wise::zero_vjp,
    .parse_attributes = parse_attributes<ConstantAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
};

Tensor constant(HostArray value, SourceLocation where) {
  TensorType type = value.type();
  return record_typed(constant_op, make_attributes(ConstantAttributes{std::move(value)}), {}, type,
                      where);
}

namespace {

void infer_iota(const OpCall& call, ResultTypes& results) {
  const auto& [dtype, shape, dimension] = call.as<IotaAttributes>();
  if (dtype == DType::bool_) call.fail("takes integers or floats, not bool");
  if (dimension < 0 || dimension >= shape.rank())
    call.fail("dimension ", dimension, " is outside ", shape, ", which has rank ", shape.rank());
  results.push_back({dtype, shape});
}

// The partitioner adds the index of a device's first element in 32 bits. A longer dimension is
// counted as rows times columns, neither of which is that long.
constexpr std::int64_t kMostCounted = std::int64_t{1} << 31;

// Rows and columns of a long dimension: `rows * columns` is `size`, or more if no such product of
// shards of equal size is found. Rows are split like the dimension, so they have the factors that
// numbers of devices have.
std::pair<std::int64_t, std::int64_t> rows_and_columns(std::int64_t size) {
  constexpr std::int64_t kFactors = std::int64_t{4096} * 27 * 25 * 7;
  std::int64_t rows = std::gcd(size, kFactors);
  if (rows == 1) rows = 4096;
  std::int64_t columns = (size - 1) / rows + 1;
  while (columns >= kMostCounted) {
    rows *= 2;
    columns = (size - 1) / rows + 1;
  }
  return {rows, columns};
}

void emit_long_iota(const OpCall& call, OpEmission& out) {
  const auto& [dtype, shape, dimension] = call.as<IotaAttributes>();
  auto at = static_cast<std::size_t>(dimension);
  auto [rows, columns] = rows_and_columns(shape[dimension]);
  Dimensions sizes = shape.sizes();
  sizes[at] = columns;
  sizes.insert(sizes.begin() + dimension, rows);
  const TensorType table{DType::i64, Shape(sizes)};
  auto counted = [&](std::int64_t along) {
    stablehlo::Value value = out.writer.temporary();
    out.writer.op("stablehlo.iota", {{value, table}}, {}, out.location)
        .i64("iota_dimension", along)
        .done();
    return value;
  };
  auto combined = [&](std::string_view mnemonic, stablehlo::Value a, stablehlo::Value b) {
    stablehlo::Value value = out.writer.temporary();
    out.writer.elementwise(mnemonic, value, {a, b}, table, out.location);
    return value;
  };
  stablehlo::Value width = out.writer.temporary();
  out.writer.splat(width, table, static_cast<double>(columns), out.location);
  stablehlo::Value first = combined("stablehlo.multiply", counted(dimension), width);
  stablehlo::Value value = combined("stablehlo.add", first, counted(dimension + 1));
  const TensorType whole{DType::i64, shape.with(dimension, rows * columns)};
  stablehlo::Value flat = out.writer.temporary();
  out.writer.op("stablehlo.reshape", {{flat, whole}}, {{value, table}}, out.location).done();
  const TensorType counts{DType::i64, shape};
  stablehlo::Value cut = flat;
  if (whole != counts) {
    cut = out.writer.temporary();
    out.writer.op("stablehlo.slice", {{cut, counts}}, {{flat, whole}}, out.location)
        .i64_array("start_indices", Dimensions(shape.sizes().size(), 0))
        .i64_array("limit_indices", shape)
        .i64_array("strides", Dimensions(shape.sizes().size(), 1))
        .done();
  }
  out.writer.op("stablehlo.convert", out.results, {{cut, counts}}, out.location).done();
}

}  // namespace

extern constinit const OpDef iota_op = {
    .name = "iota",
    .operands = "",
    .example = "iota(DType::i32, {4, 8}, 0)",
    .infer = infer_iota,
    .sharding_rule = element_wise::rule,
    .emit =
        [](const OpCall& call, OpEmission& out) {
          const auto& [dtype, shape, dimension] = call.as<IotaAttributes>();
          if (shape[dimension] > kMostCounted) return emit_long_iota(call, out);
          out.op("stablehlo.iota").i64("iota_dimension", dimension).done();
        },
    .vjp = element_wise::zero_vjp,
    .parse_attributes = parse_attributes<IotaAttributes>,
    .traits = {.recomputation = Recomputation::kFree},
};

Tensor iota(DType dtype, Shape shape, std::int64_t dimension, SourceLocation where) {
  int normal = normalize_dimension(dimension, shape.rank(), "iota", effective_source(where));
  return record(iota_op, make_attributes(IotaAttributes{dtype, std::move(shape), normal}), {},
                where);
}

}  // namespace meshard
