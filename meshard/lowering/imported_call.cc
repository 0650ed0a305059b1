#include "meshard/lowering/imported_call.h"

#include "meshard/ops/definition/define.h"

namespace meshard {
namespace {

class ImportedAttributes final : public Attributes {
 public:
  explicit ImportedAttributes(std::shared_ptr<const ImportedBody> called)
      : body(std::move(called)) {}

  const std::type_info& type() const override { return typeid(ImportedAttributes); }
  std::unique_ptr<const Attributes> clone() const override {
    return std::make_unique<ImportedAttributes>(*this);
  }
  void print(std::string& out) const override { append(out, cat("program=", body->name)); }
  // The program computes the same results with any pullback.
  void append_key(std::string& out) const override {
    append(out,
           cat(body->key.to_string(), body->platform_number.value_or(-1), ';', body->devices, ';'));
    for (std::size_t operand : body->taken) append(out, cat(operand, ','));
    for (const auto& [name, mesh] : body->meshes) append(out, cat(name, '=', mesh, ';'));
  }

  std::shared_ptr<const ImportedBody> body;
};

const ImportedBody& body_of(const Attributes* attributes) {
  return *static_cast<const ImportedAttributes*>(attributes)->body;
}

void imported_vjp(const VjpCall& call, std::span<Tensor> out) {
  const ImportedBody& body = body_of(call.node.attributes());
  if (!body.pullback)
    throw Error(
        ErrorCode::kUnimplemented,
        cat("[load_program] \"", body.name,
            "\" has no derivative here: it was exported without one, or with one of a lower "
            "order. Use exported.serialize(vjp_order=1), for derivatives of derivatives and "
            "forward mode vjp_order=2"),
        call.node.where());
  std::vector<Tensor> found = body.pullback(call.operands, call.cotangents);
  for (std::size_t i = 0; i < out.size(); ++i)
    if (call.needs(i)) out[i] = found[i];
}

void batch_imported(const BatchCall& call, std::span<Tensor>) {
  throw Error(ErrorCode::kUnimplemented,
              cat("[load_program] vmap of \"", body_of(call.node.attributes()).name,
                  "\": a loaded program has no batched form. Export it under jax.vmap, or call it "
                  "for each member"),
              call.node.where());
}

constinit const OpDef imported_call_op = {
    .name = "load_program",
    .operands = "arguments...",
    .doc = "A program that was written elsewhere.",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          for (const TensorType& type : body_of(call.attributes).results) results.push_back(type);
        },
    .sharding_rule = whole_rule,
    // Written by NodeWriter::emit_imported_call.
    .emit = [](const OpCall& call, OpEmission&) { call.fail("is written without its program"); },
    .vjp = imported_vjp,
    .batch = batch_imported,
};

}  // namespace

std::vector<Tensor> record_imported_call(std::shared_ptr<const ImportedBody> body,
                                         std::span<const Tensor> operands, SourceLocation where) {
  return record_all(imported_call_op, std::make_unique<ImportedAttributes>(std::move(body)),
                    operands, where);
}

const ImportedBody* imported_body(const Node& node) {
  return &node.op() == &imported_call_op ? &body_of(node.attributes()) : nullptr;
}

}  // namespace meshard
