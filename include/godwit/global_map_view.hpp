// global_map_view<K, V>: a hash map in global memory as threads use it. The owner, and what the map is:
// global_map.hpp.
//
// A bucket is a state word (a lock bit, which slots are taken, a version), the address of a bucket that
// continues it, slots. Writers take the lock of a key's bucket by one atomic, and no lock is ever held while
// a thread could leave its worker (GM7). Readers take none: they read the state (GM1), the slots, and the
// state again (GM2); if it has changed (GM4), they begin anew. Buckets that continue others are linked when
// they are complete (GM3, GM5) and stay until the table is replaced (GM6). Protocol: docs/protocols/map.md.
// Model: models/global_map.pml. The table itself: detail/global_map_table.hpp. Tests:
// tests/global/map_test.cpp, map_owning_test.cpp.
#pragma once

#include <godwit/detail/global_map_table.hpp>
#include <godwit/detail/global_owner.hpp>
#include <godwit/global_access.hpp>
#include <godwit/global_atomic.hpp>
#include <godwit/global_memory.hpp>
#include <godwit/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace godwit {

namespace detail {

inline std::uint64_t mix_bits(std::uint64_t h) noexcept {
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ull;
  h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93ull;
  return h ^ (h >> 32);
}

}  // namespace detail

/// What global_map hashes keys with, unless told otherwise: std::hash if there is one, else the bytes of
/// types without padding. The same in all workers.
template <class K>
struct global_hash {
  std::uint64_t operator()(const K& key) const noexcept {
    if constexpr (std::is_integral_v<K> || std::is_enum_v<K>) {
      return detail::mix_bits(static_cast<std::uint64_t>(key));
    } else if constexpr (std::is_default_constructible_v<std::hash<K>>) {
      return detail::mix_bits(std::hash<K>()(key));
    } else {
      static_assert(
          std::has_unique_object_representations_v<K>,
          "godwit::global_map: no hash for this key: specialise std::hash for it, or pass a function object "
          "as third "
          "template argument (its bytes cannot be used: they have padding or several forms of one value)");
      std::uint64_t h = sizeof(K);
      const auto* bytes = reinterpret_cast<const std::byte*>(std::addressof(key));
      for (std::size_t i = 0; i < sizeof(K); i += 8) {
        std::uint64_t w = 0;
        std::memcpy(&w, bytes + i, std::min<std::size_t>(8, sizeof(K) - i));
        h = detail::mix_bits(h ^ w) + i;
      }
      return h;
    }
  }
};

/// A map as threads use it: plain bytes, owns nothing; valid as long as the owner. All operations may be
/// called by any thread at any time, unless marked "quiet": then nobody may change the map meanwhile. None
/// but for_each lets the thread leave its worker. Values may own something, as elements of a global_vector
/// may; keys may not. Hash and Equal are function objects without state; Equal may be shown keys that are
/// half overwritten (its answer is not used then).
template <class K, class V, class Hash = global_hash<K>, class Equal = std::equal_to<K>>
class global_map_view : protected detail::map_table<K, V, Hash, Equal> {
  static_assert((detail::require_global_element<K>(), detail::require_global_element<V>(), true));
  static_assert(!detail::owning_element<K>,
                "godwit::global_map: keys are compared while others may be overwriting them, so they own "
                "nothing: use plain values (std::array<char, N> for text)");
  static_assert(std::is_empty_v<Hash> && std::is_empty_v<Equal>,
                "godwit::global_map: Hash and Equal must have no state");

 public:
  using key_type = K;
  using mapped_type = V;

  constexpr global_map_view() noexcept = default;

  /// The value at @p key, or nothing. Of values that own something see find(key, f).
  std::optional<V> find(const K& key) const {
    detail::require_map_copies<V>();
    if constexpr (!owning) {
      image_of<slot_bytes> slot;
      if (!seek(key, slot)) return std::nullopt;
      return detail::from_bytes<V>(slot.bytes() + value_offset);
    }
  }
  /// Values that own something: `f(const V&)` on the value at @p key, alone and at once; false if there is
  /// none. f as said at update; what it takes along of the value (a span) is good until somebody else takes
  /// the value out, changes or erases it. Cost: update's.
  template <class F>
  requires(detail::owning_element<V>&& std::invocable<F&, const V&>) bool find(const K& key, F&& f) const {
    const address head = head_of(table_now(), key);
    guard lock(head);
    image_of<slot_bytes> slot;
    if (search(head, lock.state(), key, slot).bucket == 0) return false;
    bytes_of_value v = value_in(slot);
    call_locked(f, std::as_const(v.value()));
    return true;
  }
  bool contains(const K& key) const {
    if constexpr (owning) {
      image_of<slot_bytes> slot;
      return seek(key, slot);
    } else {
      return find(key).has_value();
    }
  }

  /// False, and nothing happens, if the key is there already. Throws global_bad_alloc, as all that may add an
  /// entry. Values that own something are moved in: @p value is empty afterwards if it is in the map, else as
  /// it was.
  bool insert(const K& key, const V& value) const {
    detail::require_map_copies<V>();
    return change(
        key, [&] { return given(value); }, [](V&) { return false; });
  }
  bool insert(const K& key, V&& value) const requires detail::owning_element<V> {
    return give(key, value, [](V&) { return false; });
  }
  /// True if it is a new entry. Of values that own something @p value is empty afterwards, and the one that
  /// was there is destroyed, here, when nothing is locked any more.
  bool insert_or_assign(const K& key, const V& value) const {
    detail::require_map_copies<V>();
    return change(
        key, [&] { return given(value); },
        [&](V& v) {
          if constexpr (!owning) v = value;
          return true;
        });
  }
  bool insert_or_assign(const K& key, V&& value) const requires detail::owning_element<V> {
    const bool added = give(key, value, [&](V& v) {
      exchange_bytes(v, value);
      return true;
    });
    if (added) return true;
    std::destroy_at(std::addressof(value));
    std::construct_at(std::addressof(value));
    return false;
  }
  /// `f(V&)` on the value at @p key, alone and at once; false if there is none. f runs under a lock: short,
  /// no spawn, no join, no map. If it throws nothing has changed; a value that owns something is as f has
  /// left it. f may use global memory, allocate and free it. What takes long to destroy it should swap out,
  /// for after the lock.
  template <class F>
  requires std::invocable<F&, V&>
  bool update(const K& key, F&& f) const {
    bool found = false;
    change(
        key, [] { return fresh(); },
        [&](V& v) {
          found = true;
          call_locked(f, v);
          return true;
        });
    return found;
  }
  /// `f(V&)` as above if there is an entry, else a new one with @p value. True if it is new. Values that own
  /// something are moved in as by insert.
  template <class F>
  requires std::invocable<F&, V&>
  bool insert_or_update(const K& key, const V& value, F&& f) const {
    detail::require_map_copies<V>();
    return change(
        key, [&] { return given(value); },
        [&](V& v) {
          call_locked(f, v);
          return true;
        });
  }
  template <class F>
  requires(detail::owning_element<V>&& std::invocable<F&, V&>) bool insert_or_update(const K& key, V&& value,
                                                                                     F&& f) const {
    return give(key, value, [&](V& v) {
      call_locked(f, v);
      return true;
    });
  }
  /// Add to the value at @p key, which begins with 0; gives back what it was.
  V fetch_add(const K& key, V delta) const requires std::integral<V> {
    V before = 0;
    change(
        key, [&] { return delta; },
        [&](V& v) {
          before = v;
          v = static_cast<V>(static_cast<std::uint64_t>(v) + static_cast<std::uint64_t>(delta));
          return true;
        });
    return before;
  }
  template <class D>
  void fetch_add(const K&, const D&) const requires detail::owning_element<V> {
    detail::require_map_copies<V>();
  }
  /// False if there was none. A value that owns something is destroyed, here, when nothing is locked any
  /// more.
  bool erase(const K& key) const {
    image_of<slot_bytes> slot;
    if (!take_out(key, slot)) return false;
    if constexpr (owning) {
      bytes_of_value v = value_in(slot);
      std::destroy_at(std::addressof(v.value()));
    }
    return true;
  }
  /// The same, and gives the value back, or nothing. Of several that take one entry one gets it.
  std::optional<V> take(const K& key) const {
    image_of<slot_bytes> slot;
    if (!take_out(key, slot)) return std::nullopt;
    if constexpr (owning) {
      std::optional<V> taken(std::in_place);
      bytes_of_value v = value_in(slot);
      exchange_bytes(*taken, v.value());
      std::destroy_at(std::addressof(v.value()));
      return taken;
    } else {
      return detail::from_bytes<V>(slot.bytes() + value_offset);
    }
  }

  /// Number of entries; while others change the map: some number that it had, about. Cost: one load per
  /// worker.
  std::uint64_t size() const {
    static_cast<void>(table_now());
    std::uint64_t n = 0;
    for (std::uint32_t w = 0; w < detail::all_workers(); ++w)
      n += atomic_load(word_of(w, count_word), std::memory_order_relaxed);
    // An entry that one worker adds may be taken out and counted by another one first.
    return static_cast<std::int64_t>(n) < 0 ? 0 : n;
  }
  bool empty() const { return size() == 0; }
  std::uint64_t bucket_count() const { return table_now().buckets; }
  /// Entries per slot of the table; much above 0.8 it is time for reserve().
  double load_factor() const {
    return static_cast<double>(size()) / static_cast<double>(bucket_count() * slots);
  }

  /// `f(key, value)` for every entry, by as many threads as are worth it, in any order. Quiet. f is copied
  /// into the threads, so it must be a plain closure; it may spawn and join. A value that owns something it
  /// may look at, and take spans of it along.
  template <class F>
  requires std::invocable<F&, const K&, const V&>
  void for_each(const F& f) const {
    static_assert(
        plain<F>,
        "godwit::global_map::for_each: the function must be plain bytes: capture views, spans, pointers, "
        "numbers");
    const table t = table_now();
    visit(t, 0, t.buckets, f);
  }
  /// All entries, in any order, in the ordinary heap of the calling worker. Quiet.
  std::vector<std::pair<K, V>> to_vector() const {
    detail::require_map_copies<V>();
    const table t = table_now();
    std::vector<std::pair<K, V>> all;
    auto add = [&](const K& key, const V& value) {
      if constexpr (!owning) all.emplace_back(key, value);
    };
    for (std::uint64_t b = 0; b < t.buckets; b += batch)
      visit_batch(t, b, std::min(b + batch, t.buckets), add);
    return all;
  }

  /// Quiet. Every entry can be found where it was put, none twice, and the count is right; each bucket that
  /// continues another is in one chain and on one worker's list. Ends with std::logic_error.
  void check_invariants() const {
    const table t = table_now();
    check_chains(t);
    std::uint64_t n = 0;
    for (std::uint64_t b = 0; b < t.buckets; ++b) {
      const std::uint64_t state = atomic_load(global_ptr<std::uint64_t>(t.at + b * bucket_bytes));
      if ((state & locked) != 0)
        throw std::logic_error("global_map: bucket " + std::to_string(b) + " is locked");
      auto look = [&](const K& key, const V&) {
        ++n;
        if (head_of(t, key) != t.at + b * bucket_bytes)
          throw std::logic_error("global_map: an entry in the wrong bucket");
        if (!contains(key)) throw std::logic_error("global_map: an entry that is not found");
        int same = 0;
        auto compare = [&](const K& other, const V&) { same += Equal()(key, other) ? 1 : 0; };
        visit_batch(t, b, b + 1, compare);
        if (same != 1) throw std::logic_error("global_map: an entry twice");
      };
      visit_batch(t, b, b + 1, look);
    }
    if (n != size())
      throw std::logic_error("global_map: " + std::to_string(n) + " entries, counted " +
                             std::to_string(size()));
  }

 private:
  template <class, class, class, class>
  friend class global_map;
  using layout = detail::map_table<K, V, Hash, Equal>;
  using typename layout::address;
  using typename layout::bytes_of_value;
  using typename layout::control;
  using typename layout::fresh;
  using typename layout::guard;
  using typename layout::spot;
  using typename layout::table;
  template <std::size_t Bytes>
  using image_of = detail::map_image<Bytes>;
  using layout::all_slots, layout::batch, layout::bit_of, layout::bucket_bytes, layout::head_bytes;
  using layout::head_of, layout::locked, layout::more_bytes, layout::search, layout::slot_bytes;
  using layout::owning, layout::given, layout::value_in, layout::exchange_bytes;
  using layout::slot_of, layout::slots, layout::store_slot, layout::store_word, layout::value_offset;
  using layout::visit, layout::visit_batch, layout::count_word, layout::more_word;

  global_ptr<std::uint64_t> word_of(std::uint32_t worker, std::uint64_t word) const noexcept {
    return global_ptr<std::uint64_t>(lines_.address() + worker * sizeof(control) + word * 8);
  }
  [[gnu::always_inline]] table table_now() const {
    if (run_ != detail::hot_run() || lines_ == nullptr || detail::map_is_locked()) [[unlikely]]
      detail::map_unusable(lines_ == nullptr, detail::map_is_locked());
    return get(global_ptr<table>(lines_.address() + worker_id() * sizeof(control)));
  }
  /// Does the key have an entry? It goes to @p slot. Takes no lock.
  [[gnu::always_inline]] bool seek(const K& key, image_of<slot_bytes>& slot) const {
    const address head = head_of(table_now(), key);
    const global_ptr<std::uint64_t> state(head);
    detail::map_backoff backoff;
    for (;; backoff.wait()) {
      const std::uint64_t before = atomic_load(state, std::memory_order_acquire);  // GM1: state, then slots
      if ((before & locked) != 0) continue;
      const spot s = search(head, before, key, slot);
      std::atomic_thread_fence(std::memory_order_acquire);          // GM2: slots, then the state again
      if (atomic_load(state, std::memory_order_relaxed) == before)  // GM4: no change in between
        return s.bucket != 0;
    }
  }
  /// Has taken the entry out of its bucket, and given it to @p slot; else there was none.
  bool take_out(const K& key, image_of<slot_bytes>& slot) const {
    const address head = head_of(table_now(), key);
    {
      guard lock(head);
      const spot s = search(head, lock.state(), key, slot);
      if (s.bucket == 0) return false;
      if (s.bucket == head)
        lock.release(lock.state() & ~bit_of(s.index));
      else
        lock.release(lock.state(), [&] { store_word(s.bucket, s.state & ~bit_of(s.index)); });
    }
    count(-1);
    return true;
  }

  template <class F, class Value>
  static void call_locked(F& f, Value& v) {
    struct hold {
      hold() noexcept {
        detail::hot().map_locked = 1;  // GM7
        ++detail::hot().checkouts;     // a spawn or join now is found out like one during a checkout
        if (!detail::global_is_plain()) detail::hot().poll.store(1, std::memory_order_relaxed);
      }
      ~hold() {
        --detail::hot().checkouts;
        detail::hot().map_locked = 0;
      }
    } const hold;
    std::invoke(f, v);
  }

  /// What all writers are. `make()`: value of a new entry (nothing: none is made). `old(v)`: change the one
  /// that is there; true: it has changed. True if the entry is new.
  template <class Make, class Old>
  bool change(const K& key, Make&& make, Old&& old) const {
    const bool added = change_in(head_of(table_now(), key), key, make, old);
    if (added) count(1);
    return added;
  }
  /// The same, moving a value in that owns something.
  template <class Old>
  bool give(const K& key, V& value, Old&& old) const {
    const bool added = change(
        key, [&] { return given(value); }, old);
    if (added) std::construct_at(std::addressof(value));  // its bytes are in the map
    return added;
  }
  template <class Make, class Old>
  bool change_in(address head, const K& key, Make&& make, Old&& old) const {
    guard lock(head);
    image_of<slot_bytes> slot;
    spot s = search(head, lock.state(), key, slot);
    if (s.bucket != 0) {
      if constexpr (owning) {
        change_owner(lock, s, slot, old);
      } else {
        V v = detail::from_bytes<V>(slot.bytes() + value_offset);
        if (!old(v)) return false;
        std::memcpy(slot.bytes() + value_offset, std::addressof(v), sizeof(V));
        lock.release(lock.state(), [&] { store_slot(slot_of(s.bucket, s.index), slot); });
      }
      return false;
    }
    const fresh value = make();
    if (!value) return false;
    assert(s.last != 0 && (s.free_bucket == 0 || (s.index < slots && (s.state & bit_of(s.index)) == 0)));
    std::memset(slot.words, 0, sizeof slot.words);
    std::memcpy(slot.bytes(), std::addressof(key), sizeof(K));
    std::memcpy(slot.bytes() + value_offset, static_cast<const void*>(std::addressof(*value)), sizeof(V));
    if (s.free_bucket == head) {
      lock.release(lock.state() | bit_of(s.index), [&] { store_slot(slot_of(head, s.index), slot); });
    } else if (s.free_bucket != 0) {
      lock.release(lock.state(), [&] {
        store_slot(slot_of(s.free_bucket, s.index), slot);
        store_word(s.free_bucket, s.state | bit_of(s.index));
      });
    } else {
      const address more = continue_bucket(slot);
      lock.release(lock.state(), [&] { store_word(s.last + 8, more); });
    }
    return true;
  }
  /// What the value owns after an exception is not what it owned before: its new bytes are stored, too.
  template <class Old>
  static void change_owner(guard& lock, const spot& s, image_of<slot_bytes>& slot, Old&& old) {
    bytes_of_value v = value_in(slot);
    const auto store = [&] {
      std::memcpy(slot.bytes() + value_offset, v.bytes, sizeof(V));
      lock.release(lock.state(), [&] { store_slot(slot_of(s.bucket, s.index), slot); });
    };
    bool changed = false;
    try {
      changed = old(v.value());
    } catch (...) {
      store();
      throw;
    }
    if (changed) store();
  }
  /// A further bucket, with this one entry. It stays until the table is replaced, so readers may look at it
  /// any time (GM6).
  address continue_bucket(const image_of<slot_bytes>& slot) const {
    const address at = allocate<std::byte>(more_bytes, distribution::local(), 64).address();
    const global_ptr<std::uint64_t> mine = word_of(worker_id(), more_word);
    image_of<more_bytes> b{};
    b.words[0] = bit_of(0);
    std::memcpy(b.bytes() + head_bytes, slot.words, slot_bytes);
    b.words[bucket_bytes / 8] = get(mine);
    put(global_ptr<std::uint64_t>(at), b.words, more_bytes / 8);  // GM3, GM5: complete, and home
    put(mine, at);
    return at;
  }
  void count(std::int64_t n) const {
    atomic_fetch_add(word_of(worker_id(), count_word), static_cast<std::uint64_t>(n),
                     std::memory_order_relaxed);
  }

  void check_chains(const table& t) const {
    std::vector<address> listed, linked;
    for (std::uint32_t w = 0; w < detail::all_workers(); ++w)
      for (address at = get(word_of(w, more_word)); at != 0;
           at = get(global_ptr<std::uint64_t>(at + bucket_bytes)))
        listed.push_back(at);
    for (std::uint64_t b = 0; b < t.buckets; ++b)
      for (address at = get(global_ptr<std::uint64_t>(t.at + b * bucket_bytes + 8)); at != 0;
           at = get(global_ptr<std::uint64_t>(at + 8))) {
        linked.push_back(at);
        if ((get(global_ptr<std::uint64_t>(at)) & ~all_slots) != 0)
          throw std::logic_error("global_map: a bucket that continues another has more than slot bits");
        if (linked.size() > listed.size())
          throw std::logic_error("global_map: a chain that has no end, or a bucket that is on no list");
      }
    std::sort(listed.begin(), listed.end());
    std::sort(linked.begin(), linked.end());
    if (listed != linked || std::adjacent_find(linked.begin(), linked.end()) != linked.end())
      throw std::logic_error("global_map: buckets are not in one chain and on one list each");
  }

  global_ptr<control> lines_;
  std::uint32_t run_ = 0;
};

}  // namespace godwit
