// The classes whose objects count owners, found by their tables in this program and its libraries.
// test: timeout=60 skip-qemu
#include "heap/counted_types.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

/// As Boost has it.
namespace boost::detail {
struct sp_counted_base {
  virtual ~sp_counted_base() = default;
  virtual void dispose() noexcept = 0;
  virtual void destroy() noexcept { delete this; }
  virtual void* get_deleter() { return nullptr; }
  int owners = 1, watchers = 1;
};
}  // namespace boost::detail

namespace {

namespace heap = godwit::heap;

struct block_of_boost : boost::detail::sp_counted_base {
  void dispose() noexcept override {}
};
struct derived_again final : block_of_boost {};
struct another {
  virtual ~another() = default;
  virtual void dispose() noexcept {}
  virtual void destroy() noexcept {}
  virtual void more() {}
};
struct derived_from_another final : another {};

/// The table of what lies at @p object.
const heap::counted_type* type_at(const void* object) {
  const auto* const table = static_cast<const heap::control_block*>(object)->table;
  const auto& all = heap::counted_types();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const heap::counted_type& t) { return t.table == table; });
  return at != all.end() ? &*at : nullptr;
}
template <class T>
const heap::control_block* block_of(const std::shared_ptr<T>& p) {
  const heap::control_block* words[2];
  static_assert(sizeof words == sizeof p);
  std::memcpy(words, &p, sizeof words);
  return words[1];
}

TEST(CountedTypes, OfTheLibrary) {
  struct local {};
  const auto together = std::make_shared<local>();
  const std::shared_ptr<local> apart(new local), deleter(new local, [](local*l) { delete l; });
  const std::weak_ptr<local> weak = together;
  for (const auto* b : {block_of(together), block_of(apart), block_of(deleter)})
    EXPECT_NE(type_at(b), nullptr);
  EXPECT_EQ(block_of(together)->owners, 1);
  EXPECT_EQ(block_of(together)->watchers, 2);
}

TEST(CountedTypes, OfBoost) {
  const block_of_boost one;
  const derived_again other;
  for (const void* o : {static_cast<const void*>(&one), static_cast<const void*>(&other)})
    EXPECT_NE(type_at(o), nullptr);
}

TEST(CountedTypes, NoOthers) {
  const another one;
  const derived_from_another other;
  for (const void* o : {static_cast<const void*>(&one), static_cast<const void*>(&other)})
    EXPECT_EQ(type_at(o), nullptr);
}

TEST(CountedTypes, InOrder) {
  const auto& all = heap::counted_types();
  EXPECT_TRUE(std::is_sorted(
      all.begin(), all.end(),
      [](const heap::counted_type& a, const heap::counted_type& b) { return a.table < b.table; }));
}

}  // namespace
