#include "examples/llm/server/page_cache.h"

#include <stdexcept>
#include <utility>

namespace llm {

PageCache::PageCache(std::int64_t pages, std::int64_t page_tokens)
    : page_tokens_(page_tokens), pages_(static_cast<std::size_t>(pages)) {
  if (pages < 1 || page_tokens < 1)
    throw std::invalid_argument("[cache] " + std::to_string(pages) + " pages of " +
                                std::to_string(page_tokens) + " tokens: both must be positive");
  for (auto page = static_cast<std::int32_t>(pages); page-- > 0;) free_.push_back(page);
}

std::string PageCache::key(std::int64_t parent, std::span<const std::int32_t> tokens) {
  std::string text(reinterpret_cast<const char*>(&parent), sizeof parent);
  text.append(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
  return text;
}

PageCache::Prefix PageCache::use_prefix(std::span<const std::int32_t> tokens, std::int64_t limit) {
  Prefix prefix;
  for (std::int64_t end = page_tokens_; end <= limit; end += page_tokens_) {
    const auto part = tokens.subspan(static_cast<std::size_t>(end - page_tokens_),
                                     static_cast<std::size_t>(page_tokens_));
    const auto found = nodes_.find(key(prefix.node, part));
    if (found == nodes_.end()) break;
    Page& page = at(found->second.page);
    if (page.users++ == 0) {
      idle_.erase(page.place);
      ++used_;
    }
    prefix.pages.push_back(found->second.page);
    prefix.node = found->second.id;
  }
  return prefix;
}

std::optional<std::int32_t> PageCache::allocate() {
  std::int32_t page = 0;
  if (!free_.empty()) {
    page = free_.back();
    free_.pop_back();
  } else if (!idle_.empty()) {
    page = idle_.front();
    idle_.pop_front();
    nodes_.erase(at(page).key);
    at(page).key.clear();
  } else {
    return std::nullopt;
  }
  at(page).users = 1;
  ++used_;
  return page;
}

void PageCache::release(std::int32_t number) {
  Page& page = at(number);
  if (page.users <= 0)
    throw std::logic_error("[cache] page " + std::to_string(number) +
                           " is released, but has no user");
  if (--page.users > 0) return;
  --used_;
  if (page.key.empty()) {
    free_.push_back(number);
  } else {
    page.place = idle_.insert(idle_.end(), number);
  }
}

std::int64_t PageCache::keep(std::int32_t page, std::int64_t parent,
                             std::span<const std::int32_t> tokens) {
  std::string text = key(parent, tokens);
  const auto [place, added] = nodes_.try_emplace(text, Node{next_node_, page});
  if (added) {
    ++next_node_;
    at(page).key = std::move(text);
  }
  return place->second.id;
}

std::int64_t PageCache::available() const {
  return static_cast<std::int64_t>(free_.size() + idle_.size());
}

}  // namespace llm
