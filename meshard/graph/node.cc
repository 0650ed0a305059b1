#include "meshard/graph/node.h"

#include <new>

#include "meshard/base/free_list.h"
#include "meshard/graph/attributes.h"
#include "meshard/graph/record.h"
#include "meshard/graph/record_log.h"
#include "meshard/graph/storage.h"

namespace meshard {
namespace {

using FreeNodes = internal::FreeList<Node>;  // about 15 MB per thread at most

std::atomic<std::uint64_t> next_node{1};

}  // namespace

Node::Output::~Output() {
  if (Storage* held = storage.load(std::memory_order_acquire)) StoragePtr::adopt(held);
}

Node::Node() = default;
Node::~Node() = default;

std::uint64_t Node::next_id() { return next_node.load(std::memory_order_relaxed); }

Node* Node::make(const OpDef& op, std::unique_ptr<const Attributes> attributes, std::uint64_t trace,
                 SourceLocation where) {
  Node* node = ::new (FreeNodes::take()) Node();
  node->op_ = &op;
  node->attributes_ = std::move(attributes);
  node->id_ = next_node.fetch_add(1, std::memory_order_relaxed);
  node->trace_ = trace;
  node->where_ = where;
  node->keeps_operands_ = internal::recorder().keep_operands != 0;
  return node;
}

void Node::set_storage(std::uint32_t index, StoragePtr storage) {
  Storage* empty = nullptr;
  internal_check(outputs_[index].storage.compare_exchange_strong(empty, storage.get(),
                                                                 std::memory_order_acq_rel),
                 "[graph] a node was computed twice");
  storage.release();
}

void Node::add_output(const TensorType& type, StoragePtr storage) {
  outputs_.emplace_back(type, storage.release());
}

StoragePtr Node::take_storage(std::uint32_t index) {
  return StoragePtr::adopt(outputs_[index].storage.exchange(nullptr, std::memory_order_acq_rel));
}

void Node::forget_operands() {
  // Moved out first: releasing operands may free nodes, which must not see a half-cleared list.
  InlineVector<Value, 2> forgotten = std::move(operands_);
  operands_.clear();
}

// Iterative: a chain of a million adds must not overflow the stack. Nodes that lose their last
// reference while another node is being destroyed are queued.
void Node::destroy(Node* node) {
  if (node->log_slot_ && !internal::RecordLog::leave(*node)) return;
  auto free = [](Node* unused) {
    unused->~Node();
    FreeNodes::give(unused);
  };
  if (node->operands_.empty()) return free(node);  // it releases no other node
  thread_local InlineVector<Node*, 16>* waiting = nullptr;
  if (waiting) return waiting->push_back(node);
  InlineVector<Node*, 16> list;
  waiting = &list;
  list.push_back(node);
  while (!list.empty()) {
    Node* next = list.back();
    list.pop_back();
    free(next);
  }
  waiting = nullptr;
}

}  // namespace meshard
