// Operations that combine elements along dimensions: products and reductions.
#include <algorithm>
#include <map>

#include "tests/property/sharded_program/draw.h"
#include "tests/property/sharded_program/host_value.h"

namespace meshard::property {
namespace {

using Known = Draw::Known;

constexpr const char* kEinsums[] = {"ij,jk->ik", "ij,kj->ik",   "ij,ij->i",     "ij->ji",
                                    "ij,j->i",   "i,j->ij",     "bij,bjk->bik", "bij,bkj->bik",
                                    "ij->",      "ijk->ki",     "ij,jk->ki",    "bij,bj->i",
                                    "ii->i",     "ijk,jl->ilk", "i,i->"};

struct EinsumLetters {
  std::vector<std::string> operands;
  std::string result;
};

EinsumLetters letters_of(std::string_view spec) {
  EinsumLetters letters{{""}, ""};
  std::size_t arrow = spec.find("->");
  for (char letter : spec.substr(0, arrow)) {
    if (letter == ',')
      letters.operands.emplace_back();
    else
      letters.operands.back() += letter;
  }
  letters.result = spec.substr(arrow + 2);
  return letters;
}

bool may_contract(const Known& value) {
  return value.type().dtype != DType::bool_ && value.type().rank() > 0;
}

bool draw_einsum_of(Draw& draw, Step& step, std::size_t operands) {
  std::int64_t number;
  do number = draw.between(0, static_cast<int>(std::size(kEinsums)) - 1);
  while (letters_of(kEinsums[number]).operands.size() != operands);
  step.lists.push_back({number});
  EinsumLetters letters = letters_of(kEinsums[number]);
  std::map<char, std::int64_t> sizes;
  auto fits = [&](const Known& value) {
    if (!may_contract(value) || value.type().rank() != static_cast<int>(letters.operands[0].size()))
      return false;
    std::map<char, std::int64_t> seen;
    for (int d = 0; d < value.type().rank(); ++d) {
      auto [known, is_new] = seen.emplace(letters.operands[0][d], value.type().shape[d]);
      if (!is_new && known->second != value.type().shape[d]) return false;
    }
    return true;
  };
  if (!draw.take(step, fits)) return false;
  const TensorType& first = draw.operand(step, 0).type();
  for (int d = 0; d < first.rank(); ++d) sizes[letters.operands[0][d]] = first.shape[d];
  DType dtype = first.dtype;
  for (std::size_t i = 1; i < operands; ++i) {
    Dimensions shape;
    for (char letter : letters.operands[i]) {
      if (!sizes.count(letter)) sizes[letter] = draw.extent();
      shape.push_back(sizes[letter]);
    }
    if (!draw.take_type(step, {dtype, Shape(shape)})) return false;
  }
  return true;
}
bool draw_einsum_of_one(Draw& draw, Step& step) { return draw_einsum_of(draw, step, 1); }
bool draw_einsum_of_two(Draw& draw, Step& step) { return draw_einsum_of(draw, step, 2); }

// The matrix product's rules: vectors on either side, leading dimensions broadcast.
bool draw_matmul(Draw& draw, Step& step) {
  if (!draw.take(step, may_contract)) return false;
  TensorType a = draw.operand(step, 0).type();
  Dimensions shape;
  if (a.rank() > 2 && draw.one_in(2)) shape.push_back(a.shape[-3]);
  shape.push_back(a.shape[-1]);
  if (!shape.empty() && (shape.size() > 1 || !draw.one_in(5))) shape.push_back(draw.extent());
  return draw.take_type(step, {a.dtype, Shape(shape)});
}

bool draw_reduction_where(Draw& draw, Step& step, const Draw::Wanted& wanted) {
  if (!draw.take(step,
                 [&](const Known& value) { return value.type().rank() > 0 && wanted(value); }))
    return false;
  step.lists.push_back(draw.some_dimensions(draw.operand(step, 0).type().rank()));
  step.lists.push_back({draw.between(0, 1)});
  return true;
}
bool draw_reduction(Draw& draw, Step& step) {
  return draw_reduction_where(draw, step, [](const Known& value) { return may_contract(value); });
}
bool draw_logic(Draw& draw, Step& step) {
  return draw_reduction_where(draw, step,
                              [](const Known& value) { return value.bounds.error == 0; });
}
bool draw_small_product(Draw& draw, Step& step) {
  return draw_reduction_where(draw, step, [](const Known& value) {
    return may_contract(value) &&
           (is_integer(value.type().dtype) || (value.bounds.size <= 2 && value.type().size() <= 8));
  });
}
bool draw_along_one(Draw& draw, Step& step, const Draw::Wanted& wanted) {
  if (!draw.take(step,
                 [&](const Known& value) { return value.type().rank() > 0 && wanted(value); }))
    return false;
  step.lists.push_back({draw.between(0, draw.operand(step, 0).type().rank() - 1)});
  return true;
}
bool draw_softmax(Draw& draw, Step& step) {
  return draw_along_one(draw, step,
                        [](const Known& value) { return is_floating(value.type().dtype); });
}
// The place of the largest of inexact numbers would be a matter of luck.
bool draw_argmax(Draw& draw, Step& step) {
  return draw_along_one(draw, step, [](const Known& value) {
    return value.type().dtype != DType::bool_ && value.bounds.error == 0;
  });
}

double reduced_count(const Arguments& args) {
  double count = 1;
  for (std::int64_t d : args.list(0)) count *= static_cast<double>(args.type(0).shape[d]);
  return count;
}

Bounds einsum_bounds(const Arguments& args, const TensorType& result) {
  EinsumLetters letters = letters_of(kEinsums[args.number(0)]);
  std::map<char, double> summed;
  for (std::size_t i = 0; i < letters.operands.size(); ++i)
    for (std::size_t d = 0; d < letters.operands[i].size(); ++d)
      if (letters.result.find(letters.operands[i][d]) == std::string::npos)
        summed[letters.operands[i][d]] =
            static_cast<double>(args.type(static_cast<int>(i)).shape[static_cast<int>(d)]);
  double count = 1;
  for (auto [letter, size] : summed) count *= size;
  if (args.operands.size() == 2) return contracted(args, result, count);
  return rounded(result, count * args.bounds[0].size, count * args.bounds[0].error, count);
}
Bounds matmul_bounds(const Arguments& args, const TensorType& result) {
  return contracted(args, result, static_cast<double>(args.type(0).shape[-1]));
}
Bounds sum_bounds(const Arguments& args, const TensorType& result) {
  double count = reduced_count(args);
  return rounded(result, count * args.bounds[0].size, count * args.bounds[0].error, count + 4);
}
Bounds mean_bounds(const Arguments& args, const TensorType& result) {
  return rounded(result, args.bounds[0].size, args.bounds[0].error, reduced_count(args) + 4);
}
Bounds variance_bounds(const Arguments& args, const TensorType& result) {
  double size = 2 * args.bounds[0].size;
  return rounded(result, size * size, 4 * size * args.bounds[0].error, reduced_count(args) + 16);
}
Bounds product_bounds(const Arguments& args, const TensorType& result) {
  double count = reduced_count(args), size = std::max(args.bounds[0].size, 1.0), product = 1;
  for (int i = 0; i < static_cast<int>(count); ++i) product *= size;
  return rounded(result, product, count * product * args.bounds[0].error, count);
}
Bounds softmax_bounds(const Arguments& args, const TensorType& result) {
  auto count = static_cast<double>(args.type(0).shape[args.number(0)]);
  return rounded(result, 1,
                 4 * args.bounds[0].error + 8 * epsilon(result.dtype) * args.bounds[0].size,
                 count + 32);
}
Bounds log_softmax_bounds(const Arguments& args, const TensorType& result) {
  auto count = static_cast<double>(args.type(0).shape[args.number(0)]);
  return rounded(result, 2 * args.bounds[0].size + count, 2 * args.bounds[0].error, count + 32);
}
Bounds truth(const Arguments&, const TensorType&) { return {1, 0}; }
Bounds place_in_dimension(const Arguments& args, const TensorType&) {
  return {static_cast<double>(args.type(0).shape[args.number(0)]), 0};
}

const Operation kContractions[] = {
    {"matmul", MESHARD_CALL(matmul(A(0), A(1))), draw_matmul, matmul_bounds, true, 6, host::matmul},
    {"einsum of two", MESHARD_CALL(einsum(E(0), {A(0), A(1)})), draw_einsum_of_two, einsum_bounds,
     true, 4},
    {"einsum of one", MESHARD_CALL(einsum(E(0), {A(0)})), draw_einsum_of_one, einsum_bounds, true,
     1},
    {"sum", MESHARD_CALL(sum(A(0), L(0), B(1))), draw_reduction, sum_bounds, true, 6, host::sum},
    {"mean", MESHARD_CALL(mean(A(0), L(0), B(1))), draw_reduction, mean_bounds, true, 2,
     host::mean},
    {"var", MESHARD_CALL(var(A(0), L(0), 0, B(1))), draw_reduction, variance_bounds, true, 1},
    {"max", MESHARD_CALL(max(A(0), L(0), B(1))), draw_reduction, moved},
    {"min", MESHARD_CALL(min(A(0), L(0), B(1))), draw_reduction, moved, false, 1},
    {"prod", MESHARD_CALL(prod(A(0), L(0), B(1))), draw_small_product, product_bounds, false, 1},
    {"any", MESHARD_CALL(any(A(0), L(0), B(1))), draw_logic, truth, false, 1},
    {"all", MESHARD_CALL(all(A(0), L(0), B(1))), draw_logic, truth, false, 1},
    {"argmax", MESHARD_CALL(argmax(A(0), N(0))), draw_argmax, place_in_dimension},
    {"softmax", MESHARD_CALL(softmax(A(0), N(0))), draw_softmax, softmax_bounds, true, 2,
     host::softmax},
    {"log_softmax", MESHARD_CALL(log_softmax(A(0), N(0))), draw_softmax, log_softmax_bounds, true,
     1},
};

}  // namespace

std::span<const Operation> contraction_operations() { return kContractions; }
std::span<const char* const> einsum_specs() { return kEinsums; }

}  // namespace meshard::property
