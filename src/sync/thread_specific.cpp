// Tables of thread_specific values: one per thread that has any, found by the thread's block. See
// thread_specific.hpp.
#include <godwit/thread_specific.hpp>

#include <mutex>
#include <memory>
#include <utility>
#include <vector>

#include "seams/park.hpp"

namespace godwit::detail {

namespace {

struct entry {
  std::uint64_t number = 0;  // of the key; another's: there is none
  void* value = nullptr;
  destroy_fn* destroy = nullptr;
};
using table = std::vector<entry>;

struct keys {
  std::mutex lock;  // held for some instructions, never across a suspension
  std::uint64_t next_number = 1;
  std::uint32_t indices = 0;
  std::vector<std::uint32_t> free;
};
keys& all_keys() {
  static keys* k = new keys;  // never destroyed: globals may be destroyed after it
  return *k;
}

entry* find(thread_block* block, specific_key k) noexcept {
  auto* t = static_cast<table*>(block->local);
  if (t == nullptr || k.index >= t->size()) return nullptr;
  entry& e = (*t)[k.index];
  return e.number == k.number ? &e : nullptr;
}

constexpr int rounds_at_end = 4;  // destructors may make new values: like PTHREAD_DESTRUCTOR_ITERATIONS

}  // namespace

specific_key new_specific_key() {
  keys& all = all_keys();
  const std::lock_guard guard(all.lock);
  if (all.free.empty()) return {all.indices++, all.next_number++};
  const std::uint32_t index = all.free.back();
  all.free.pop_back();
  return {index, all.next_number++};
}

void free_specific_key(specific_key k) noexcept {
  keys& all = all_keys();
  const std::lock_guard guard(all.lock);
  all.free.push_back(k.index);
}

void* get_specific(specific_key k) noexcept {
  thread_block* block = this_block();
  if (block == nullptr) need_substrate_threads("thread_specific");
  const entry* e = find(block, k);
  return e != nullptr ? e->value : nullptr;
}

void set_specific(specific_key k, void* value, destroy_fn* destroy) {
  if (this_block()->local == nullptr) {
    auto made = std::make_unique<table>();
    // may migrate; a layer above ends them itself
    if (this_block()->at_end == nullptr) at_thread_end(end_specifics);
    this_block()->local = made.release();
  }
  auto& t = *static_cast<table*>(this_block()->local);
  if (k.index >= t.size()) t.resize(k.index + 1);
  const entry old = std::exchange(t[k.index], {k.number, value, destroy});
  if (old.number != k.number && old.value != nullptr) old.destroy(old.value);  // of a key that is gone
}

void end_specifics(thread_block* block) noexcept {
  for (int round = 0; round < rounds_at_end && block->local != nullptr; ++round) {
    auto* t = static_cast<table*>(block->local);
    bool any = false;
    for (std::size_t i = 0; i < t->size(); ++i) {  // destructors may add to it
      const entry e = std::exchange((*t)[i], {});
      if (e.value == nullptr) continue;
      any = true;
      e.destroy(e.value);
    }
    if (!any) break;
  }
  delete static_cast<table*>(std::exchange(block->local, nullptr));
}

}  // namespace godwit::detail
