// The nodes of a recorded program; every op call records one.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "meshard/array/shape.h"
#include "meshard/base/fields.h"
#include "meshard/base/inline_vector.h"
#include "meshard/base/source_location.h"

namespace meshard {

struct Annotations;
class Attributes;
template <HasFields T>
class AttributesOf;
struct OpDef;
class Node;
class Storage;
class StoragePtr;
namespace internal {
class RecordLog;
}

/// One result of a node. A handle: a copy adds a reference to the node.
class Value {
 public:
  Value() = default;
  explicit Value(Node* node, std::uint32_t index = 0);
  /// The first Value of a new node. @pre no other thread sees the node
  static Value first_of(Node* node);
  /// The first result of a node, with a reference that the caller has taken.
  static Value adopt(Node* node) {
    Value value;
    value.node_ = node;
    return value;
  }
  Value(const Value& other);
  Value(Value&& other) noexcept
      : node_(std::exchange(other.node_, nullptr)), index_(other.index_) {}
  Value& operator=(Value other) noexcept {
    std::swap(node_, other.node_);
    std::swap(index_, other.index_);
    return *this;
  }
  ~Value();

  explicit operator bool() const { return node_ != nullptr; }
  Node* node() const { return node_; }
  Node* operator->() const { return node_; }
  std::uint32_t index() const { return index_; }
  const TensorType& type() const;
  /// The computed value; nullptr while it is only recorded.
  Storage* storage() const;

  friend bool operator==(const Value& a, const Value& b) {
    return a.node_ == b.node_ && a.index_ == b.index_;
  }

 private:
  Node* node_ = nullptr;
  std::uint32_t index_ = 0;
};

/// One op call: op, attributes, operands, result types, the user's line, and the results' storage
/// once computed. Owned by the Values that refer to it; long chains are released without recursion.
///
/// Operands are always recorded before their users, so ids are a topological order.
class Node {
 public:
  struct Output {
    explicit Output(TensorType output_type) : type(std::move(output_type)) {}
    // An owner of `computed` already.
    Output(const TensorType& output_type, Storage* computed)
        : type(output_type), storage(computed) {}
    Output(Output&& other) noexcept
        : type(std::move(other.type)), storage(other.storage.exchange(nullptr)) {}
    ~Output();
    TensorType type;
    std::atomic<Storage*> storage{nullptr};  // owns one count; set at most once
  };

  static Node* make(const OpDef& op, std::unique_ptr<const Attributes> attributes,
                    std::uint64_t trace, SourceLocation where);

  const OpDef& op() const { return *op_; }
  const Attributes* attributes() const { return attributes_.get(); }
  template <class T>
  const T& attributes_as() const {
    return static_cast<const AttributesOf<T>*>(attributes_.get())->value();
  }
  std::span<const Value> operands() const { return {operands_.data(), operands_.size()}; }
  std::size_t num_outputs() const { return outputs_.size(); }
  const TensorType& type(std::uint32_t index = 0) const { return outputs_[index].type; }
  /// What the results carry in addition to their types (annotation.h); null for nearly all nodes.
  const std::shared_ptr<const Annotations>& annotations() const { return annotations_; }
  SourceLocation where() const { return where_; }
  /// Increases with every node of the process.
  std::uint64_t id() const { return id_; }
  /// Nodes that are made from now on have at least this id.
  static std::uint64_t next_id();
  /// The trace that recorded it; 0 for lazy values.
  std::uint64_t trace() const { return trace_; }
  /// True if a differentiated function needs the operands after the node is computed.
  bool keeps_operands() const { return keeps_operands_; }
  /// True if the program did not choose devices for the results: they follow the operands that they
  /// are used with (leaf.h). A recorded node may be unplaced although its operands are placed.
  bool is_unplaced() const { return is_unplaced_.load(std::memory_order_relaxed); }
  /// @pre no other thread sees the node, or the caller holds the evaluator's lock and the results
  /// have no storage yet.
  void set_unplaced() { is_unplaced_.store(true, std::memory_order_relaxed); }

  Storage* storage(std::uint32_t index = 0) const {
    return outputs_[index].storage.load(std::memory_order_acquire);
  }
  /// Sets the computed value of a result. @pre it has none yet.
  void set_storage(std::uint32_t index, StoragePtr storage);
  /// Removes the computed value; the result can be computed again. Other threads may still read the
  /// storage, so the caller must keep it.
  /// @pre the node has its operands; the caller holds the evaluator's lock.
  StoragePtr take_storage(std::uint32_t index);
  /// Drops the operands of a computed node, so that the nodes they depend on can be released.
  /// @pre the caller holds the evaluator's lock.
  void forget_operands();

  /// The number of Values that refer to the node now.
  std::uint32_t references() const { return references_.load(std::memory_order_acquire); }

  /// The length of the longest chain of recorded nodes that led to this one and were not computed
  /// when it was recorded. An upper bound for the chain that must be computed now.
  std::uint32_t pending_depth() const { return pending_depth_; }
  /// Corrects the chain length, since some of the nodes may have been computed meanwhile.
  /// @pre no other thread sees the node yet
  void set_pending_depth(std::uint32_t depth) { pending_depth_ = depth & kMostDepth; }

  void add_operand(const Value& operand) {
    if (!operand.storage() && operand->pending_depth_ >= pending_depth_)
      pending_depth_ = (operand->pending_depth_ + 1) & kMostDepth;
    operands_.push_back(operand);
  }
  void add_output(TensorType type) { outputs_.emplace_back(std::move(type)); }
  /// A result that is computed already. @pre no other thread sees the node
  void add_output(const TensorType& type, StoragePtr storage);
  void annotate(std::shared_ptr<const Annotations> annotations) {
    annotations_ = std::move(annotations);
  }

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

 private:
  friend class Value;
  friend class internal::RecordLog;
  Node();
  ~Node();
  void retain() { references_.fetch_add(1, std::memory_order_relaxed); }
  void release() {
    // The owner of the only reference needs no atomic subtraction.
    if (references_.load(std::memory_order_acquire) == 1 ||
        references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      destroy(this);
  }
  static void destroy(Node* node);

  static constexpr std::uint32_t kMostDepth = 0x7FFFFFFF;

  std::atomic<std::uint32_t> references_{0};
  std::uint32_t pending_depth_ : 31 = 0;
  std::uint32_t keeps_operands_ : 1 = 0;
  std::atomic<bool> is_unplaced_{false};
  std::shared_ptr<const Annotations> annotations_;
  const OpDef* op_ = nullptr;
  std::unique_ptr<const Attributes> attributes_;
  std::uint64_t id_ = 0;
  std::uint64_t trace_ = 0;
  // Where the log of the thread that recorded it has the node; null for nodes of traces.
  std::atomic<Node*>* log_slot_ = nullptr;
  SourceLocation where_;
  InlineVector<Value, 2> operands_;
  InlineVector<Output, 1> outputs_;
};

inline Value::Value(Node* node, std::uint32_t index) : node_(node), index_(index) {
  if (node_) node_->retain();
}
inline Value Value::first_of(Node* node) {
  Value value;
  value.node_ = node;
  node->references_.store(1, std::memory_order_relaxed);
  return value;
}
inline Value::Value(const Value& other) : Value(other.node_, other.index_) {}
inline Value::~Value() {
  if (node_) node_->release();
}
inline const TensorType& Value::type() const { return node_->type(index_); }
inline Storage* Value::storage() const { return node_->storage(index_); }

}  // namespace meshard
