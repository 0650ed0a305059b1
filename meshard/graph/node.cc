#include "meshard/graph/node.h"

#include <cstdlib>
#include <new>

#include "meshard/graph/attributes.h"
#include "meshard/graph/record.h"
#include "meshard/graph/storage.h"

namespace meshard {
namespace {

// This thread's freed nodes, kept for reuse. A step of a lazy program frees about as many nodes as
// it records, and malloc would cost as much as the rest of the recording.
class FreeNodes {
 public:
  ~FreeNodes() {
    while (first_) std::free(std::exchange(first_, first_->next));
    closed_ = true;
  }
  void* take() {
    if (!first_) {
      void* fresh = std::malloc(sizeof(Node));
      if (!fresh) throw std::bad_alloc();
      return fresh;
    }
    --count_;
    return std::exchange(first_, first_->next);
  }
  void give(void* memory) {
    if (closed_ || count_ >= kKept) return std::free(memory);
    ++count_;
    first_ = ::new (memory) Link{first_};
  }

 private:
  struct Link {
    Link* next;
  };
  static constexpr std::size_t kKept = 1 << 16;  // at most about 15 MB per thread
  Link* first_ = nullptr;
  std::size_t count_ = 0;
  bool closed_ = false;
};

thread_local FreeNodes free_nodes;

std::atomic<std::uint64_t> next_id{1};

}  // namespace

Node::Output::~Output() {
  if (Storage* held = storage.load(std::memory_order_acquire)) StoragePtr::adopt(held);
}

Node::Node() = default;
Node::~Node() = default;

Node* Node::make(const OpDef& op, std::unique_ptr<const Attributes> attributes, std::uint64_t trace,
                 SourceLocation where) {
  Node* node = ::new (free_nodes.take()) Node();
  node->op_ = &op;
  node->attributes_ = std::move(attributes);
  node->id_ = next_id.fetch_add(1, std::memory_order_relaxed);
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
  thread_local InlineVector<Node*, 16>* waiting = nullptr;
  if (waiting) return waiting->push_back(node);
  InlineVector<Node*, 16> list;
  waiting = &list;
  list.push_back(node);
  while (!list.empty()) {
    Node* next = list.back();
    list.pop_back();
    next->~Node();
    free_nodes.give(next);
  }
  waiting = nullptr;
}

}  // namespace meshard
