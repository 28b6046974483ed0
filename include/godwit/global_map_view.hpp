// global_map_view<K, V>: a hash map in global memory as threads use it. The owner, and what the map is:
// global_map.hpp.
//
// A bucket is a state word (a lock bit, which slots are taken, a version), the address of a bucket that
// continues it, slots. Writers take the lock of a key's bucket by one atomic, and no lock is ever held while
// a thread could leave its worker (GM7). Readers take none: they read the state (GM1), the slots, and the
// state again (GM2); if it has changed (GM4), they begin anew. Buckets that continue others are linked when
// they are complete (GM3, GM5) and stay until the table is replaced (GM6). Protocol: docs/protocols/map.md.
// Model: models/global_map.pml. Tests: tests/global/map_test.cpp.
#pragma once

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

template <class T>
T from_bytes(const void* bytes) noexcept {
  alignas(T) std::byte raw[sizeof(T)];
  std::memcpy(raw, bytes, sizeof(T));
  return *std::launder(reinterpret_cast<T*>(raw));
}

/// The worker is inside a function given to update or insert_or_update, and holds a lock.
inline bool map_is_locked() noexcept { return hot_test<offsetof(hot_words, map_locked)>(); }

[[noreturn, gnu::cold, gnu::noinline]] inline void map_unusable(bool none, bool nested) {
  if (nested)
    throw std::logic_error(
        "godwit: global_map: the function given to update must not use a map: it holds a lock. Compute "
        "before or afterwards");
  if (none)
    throw std::logic_error(
        "godwit: this global_map has no table (made without a size, or moved from): give it the number of "
        "entries that will come");
  run_is_over("global_map");
}

/// Waiting for a lock: shortly as a CPU does, then letting others have the CPU, for the holder may have lost
/// it.
class map_backoff {
 public:
  void wait() {
    if (++rounds_ % 64 == 0) global_pause();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#elif defined(__riscv)
    asm volatile(".insn i 0x0f, 0, x0, x0, 0x010");  // pause
#elif defined(__sparc__)
    asm volatile("rd %%ccr, %%g0" ::: "memory");
#endif
  }

 private:
  unsigned rounds_ = 0;
};

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
/// but for_each lets the thread leave its worker. Hash and Equal are function objects without state; Equal
/// may be shown keys that are half overwritten (its answer is not used then).
template <class K, class V, class Hash = global_hash<K>, class Equal = std::equal_to<K>>
class global_map_view {
  static_assert((detail::require_global_value<K>(), detail::require_global_value<V>(), true));
  static_assert(std::is_empty_v<Hash> && std::is_empty_v<Equal>,
                "godwit::global_map: Hash and Equal must have no state");

 public:
  using key_type = K;
  using mapped_type = V;

  constexpr global_map_view() noexcept = default;

  /// The value at @p key, or nothing.
  std::optional<V> find(const K& key) const {
    const address head = head_of(table_now(), key);
    const global_ptr<std::uint64_t> state(head);
    detail::map_backoff backoff;
    for (;;) {
      const std::uint64_t before = atomic_load(state, std::memory_order_acquire);  // GM1: state, then slots
      if ((before & locked) == 0) {
        image_of<slot_bytes> slot;
        const spot s = search(head, before, key, slot);
        std::atomic_thread_fence(std::memory_order_acquire);            // GM2: slots, then the state again
        if (atomic_load(state, std::memory_order_relaxed) == before) {  // GM4: no change in between
          if (s.bucket == 0) return std::nullopt;
          return detail::from_bytes<V>(slot.bytes() + value_offset);
        }
      }
      backoff.wait();
    }
  }
  bool contains(const K& key) const { return find(key).has_value(); }

  /// False, and nothing happens, if the key is there already. Throws global_bad_alloc, as all that may add an
  /// entry.
  bool insert(const K& key, const V& value) const {
    return change(
        key, [&] { return value; }, [](V&) { return false; });
  }
  /// True if it is a new entry.
  bool insert_or_assign(const K& key, const V& value) const {
    return change(
        key, [&] { return value; },
        [&](V& v) {
          v = value;
          return true;
        });
  }
  /// `f(V&)` on the value at @p key, alone and at once; false if there is none. f runs under a lock: short,
  /// no spawn, no join, no map. If it throws nothing has changed.
  template <class F>
  requires std::invocable<F&, V&>
  bool update(const K& key, F&& f) const {
    bool found = false;
    change(
        key, [] { return std::optional<V>(); },
        [&](V& v) {
          found = true;
          call_locked(f, v);
          return true;
        });
    return found;
  }
  /// `f(V&)` as above if there is an entry, else a new one with @p value. True if it is new.
  template <class F>
  requires std::invocable<F&, V&>
  bool insert_or_update(const K& key, const V& value, F&& f) const {
    return change(
        key, [&] { return value; },
        [&](V& v) {
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
  /// False if there was none.
  bool erase(const K& key) const {
    const address head = head_of(table_now(), key);
    {
      guard lock(head);
      image_of<slot_bytes> slot;
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

  /// Number of entries; while others change the map: some number that it had, about. Cost: one load per
  /// worker.
  std::uint64_t size() const {
    static_cast<void>(table_now());
    std::uint64_t n = 0;
    for (std::uint32_t w = 0; w < worker_count(); ++w)
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
  /// into the threads, so it must be a plain closure; it may spawn and join.
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
    const table t = table_now();
    std::vector<std::pair<K, V>> all;
    auto add = [&](const K& key, const V& value) { all.emplace_back(key, value); };
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
  using address = detail::global_address;

  // A bucket: state, address of the next one, slots. One that continues another uses only the slot bits of
  // its state, and has behind its slots the address of another such bucket that the same worker allocated.
  // W: all three by who holds the lock of the head (the lock bit: who takes it); R: all, at any time. The
  // address behind the slots: W who allocates, before it is linked; R quiet.
  static constexpr std::size_t value_offset = (sizeof(K) + alignof(V) - 1) / alignof(V) * alignof(V);
  static constexpr std::size_t key_words = (sizeof(K) + 7) / 8;
  static constexpr std::size_t slot_bytes = (value_offset + sizeof(V) + 7) / 8 * 8;
  static constexpr std::size_t head_bytes = 16;
  static constexpr unsigned slots =
      static_cast<unsigned>(std::clamp<std::size_t>((128 - head_bytes) / slot_bytes, 2, 14));
  static constexpr std::size_t bucket_bytes = (head_bytes + slots * slot_bytes + 63) / 64 * 64;
  static constexpr std::size_t more_bytes = bucket_bytes + 8;  ///< of a bucket that continues another
  static constexpr std::uint64_t locked = 1;
  static constexpr std::uint64_t all_slots = ((std::uint64_t{1} << slots) - 1) << 1;
  static constexpr std::uint64_t version_one = std::uint64_t{1} << 17;
  static constexpr std::uint64_t batch = std::max<std::uint64_t>(1, 4096 / bucket_bytes);
  static_assert(all_slots < version_one && bucket_bytes % 64 == 0);
  static std::uint64_t bit_of(unsigned slot) noexcept { return std::uint64_t{2} << slot; }

  // Every worker has a line of its own at home: nobody has to look elsewhere for the table.
  struct table {
    address at;             ///< of bucket 0. W quiet, R all
    std::uint64_t buckets;  ///< W quiet, R all
  };
  struct alignas(64) control {
    table now;
    std::uint64_t count;     ///< entries added minus removed at this worker. W its worker, quiet; R size()
    std::uint64_t more;      ///< buckets that it allocated to continue others: newest. W its worker, R quiet
    std::uint64_t old_more;  ///< of the table that is being replaced. W quiet, R quiet
  };
  static constexpr std::uint64_t count_word = 2, more_word = 3, old_more_word = 4;

  template <std::size_t Bytes>
  struct image_of {
    std::uint64_t words[Bytes / 8];
    std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(words); }
    const std::byte* bytes() const noexcept { return reinterpret_cast<const std::byte*>(words); }
  };

  global_ptr<std::uint64_t> word_of(std::uint32_t worker, std::uint64_t word) const noexcept {
    return global_ptr<std::uint64_t>(lines_.address() + worker * sizeof(control) + word * 8);
  }
  [[gnu::always_inline]] table table_now() const {
    if (run_ != detail::hot_run() || lines_ == nullptr || detail::map_is_locked()) [[unlikely]]
      detail::map_unusable(lines_ == nullptr, detail::map_is_locked());
    return get(global_ptr<table>(lines_.address() + worker_id() * sizeof(control)));
  }
  static address head_of(const table& t, const K& key) {
    // The hash as a fraction of the table: any number of buckets will do.
    __extension__ using wide = unsigned __int128;
    return t.at + static_cast<std::uint64_t>(
                      (static_cast<wide>(static_cast<std::uint64_t>(Hash()(key))) * t.buckets) >> 64) *
                      bucket_bytes;
  }
  static address slot_of(address bucket, unsigned i) noexcept { return bucket + head_bytes + i * slot_bytes; }

  // Slots are read while others write them: word by word, then thrown away if the version says so (GM2).
  static void load_words(address at, std::uint64_t* to, std::size_t n) noexcept {
    for (std::size_t i = 0; i < n; ++i)
      to[i] = std::atomic_ref(*detail::global_raw<std::uint64_t>(at + i * 8)).load(std::memory_order_relaxed);
  }
  static void store_slot(address at, const image_of<slot_bytes>& slot) {
    if (!detail::global_is_plain()) return detail::global_put(at, slot.words, slot_bytes);
    for (std::size_t i = 0; i < slot_bytes / 8; ++i)
      std::atomic_ref(*detail::global_raw<std::uint64_t>(at + i * 8))
          .store(slot.words[i], std::memory_order_relaxed);
  }
  /// State of a bucket that continues another, or who comes next.
  static void store_word(address at, std::uint64_t v) {
    if (!detail::global_is_plain()) {
      std::atomic_thread_fence(std::memory_order_release);  // GM3: contents first, where it is this host's
      return detail::global_put(at, &v, 8);                 // GM5: they are home
    }
    // GM3: contents first
    std::atomic_ref(*detail::global_raw<std::uint64_t>(at)).store(v, std::memory_order_release);
  }

  /// Where a key is. bucket 0: nowhere; then `free_bucket` has a free slot, or is 0, and `last` is the last
  /// bucket.
  struct spot {
    address bucket = 0;
    std::uint64_t state = 0;  ///< of the bucket (or of free_bucket)
    unsigned index = 0;       ///< of the slot (or of the free one)
    address free_bucket = 0;
    address last = 0;
  };
  /// @p state: of the head, not locked by others. The slot goes to @p slot if it is found.
  static spot search(address head, std::uint64_t state, const K& key, image_of<slot_bytes>& slot) {
    spot s;
    address at = head;
    for (;;) {
      std::uint64_t next;
      if (detail::global_is_plain()) [[likely]] {
        if (at != head) load_words(at, &state, 1);
        for (std::uint64_t left = (state & all_slots) >> 1; left != 0; left &= left - 1) {
          const auto i = static_cast<unsigned>(std::countr_zero(left));
          std::uint64_t words[key_words];
          load_words(slot_of(at, i), words, key_words);
          if (!Equal()(detail::from_bytes<K>(words), key)) continue;
          load_words(slot_of(at, i), slot.words, slot_bytes / 8);
          s.bucket = at;
          s.state = state;
          s.index = i;
          return s;
        }
        // GM3: link, then contents
        next = std::atomic_ref(*detail::global_raw<std::uint64_t>(at + 8)).load(std::memory_order_acquire);
      } else {
        image_of<bucket_bytes> b;
        // GM3, GM5: link, then contents, and from no copy that this host made before
        if (at != head) detail::global_fence();
        detail::global_get(at, b.words, bucket_bytes);
        if (at != head) state = b.words[0];
        for (std::uint64_t left = (state & all_slots) >> 1; left != 0; left &= left - 1) {
          const auto i = static_cast<unsigned>(std::countr_zero(left));
          const std::byte* there = b.bytes() + head_bytes + i * slot_bytes;
          if (!Equal()(detail::from_bytes<K>(there), key)) continue;
          std::memcpy(slot.words, there, slot_bytes);
          s.bucket = at;
          s.state = state;
          s.index = i;
          return s;
        }
        next = b.words[1];
      }
      if (s.free_bucket == 0 && (state & all_slots) != all_slots) {
        s.free_bucket = at;
        s.state = state;
        s.index = static_cast<unsigned>(std::countr_one((state & all_slots) >> 1));
      }
      s.last = at;
      if (next == 0) return s;
      at = next;
    }
  }

  /// The lock of a bucket and of those that continue it. Given back as it was, unless release() says what has
  /// changed.
  class guard {
   public:
    explicit guard(address head) : at_(head) {
      detail::map_backoff backoff;
      for (;; backoff.wait()) {
        if (detail::global_is_plain()) {
          state_ = atomic_load(at_, std::memory_order_relaxed);
          if ((state_ & locked) == 0 &&
              atomic_compare_exchange(at_, state_, state_ | locked, std::memory_order_acquire))  // GM1
            break;
        } else {
          state_ = atomic_fetch_or(at_, locked, std::memory_order_acquire);  // GM1; one round trip
          if ((state_ & locked) == 0) break;
        }
      }
      std::atomic_thread_fence(std::memory_order_release);  // GM2: locked before any slot changes
    }
    ~guard() {
      if (held_) atomic_store(at_, state_, std::memory_order_release);  // GM1
    }
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;

    /// As it was when the lock was taken.
    std::uint64_t state() const noexcept { return state_; }
    /// Carry out @p store, set the slot bits to those of @p bits, count the version, unlock.
    template <class F>
    void release(std::uint64_t bits, F&& store) {
      assert(held_ && (state_ & locked) == 0);
      // GM4: from here on there is something to look again for, also if store throws.
      state_ = (state_ & ~(version_one - 1)) + version_one + (state_ & all_slots);
      store();
      state_ = (state_ & ~all_slots) | (bits & all_slots);
      held_ = false;
      atomic_store(at_, state_, std::memory_order_release);  // GM1: slots, then state
    }
    void release(std::uint64_t bits) {
      release(bits, [] {});
    }

   private:
    global_ptr<std::uint64_t> at_;
    std::uint64_t state_ = 0;
    bool held_ = true;
  };

  template <class F>
  static void call_locked(F& f, V& v) {
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

  /// What all writers are. `fresh()`: value of a new entry (nothing: none is made). `old(v)`: change the one
  /// that is there; true: it has changed. True if the entry is new.
  template <class Fresh, class Old>
  bool change(const K& key, Fresh&& fresh, Old&& old) const {
    const bool added = change_in(head_of(table_now(), key), key, fresh, old);
    if (added) count(1);
    return added;
  }
  template <class Fresh, class Old>
  bool change_in(address head, const K& key, Fresh&& fresh, Old&& old) const {
    guard lock(head);
    image_of<slot_bytes> slot;
    spot s = search(head, lock.state(), key, slot);
    if (s.bucket != 0) {
      V v = detail::from_bytes<V>(slot.bytes() + value_offset);
      if (!old(v)) return false;
      std::memcpy(slot.bytes() + value_offset, std::addressof(v), sizeof(V));
      lock.release(lock.state(), [&] { store_slot(slot_of(s.bucket, s.index), slot); });
      return false;
    }
    const std::optional<V> value = fresh();
    if (!value) return false;
    assert(s.last != 0 && (s.free_bucket == 0 || (s.index < slots && (s.state & bit_of(s.index)) == 0)));
    std::memset(slot.words, 0, sizeof slot.words);
    std::memcpy(slot.bytes(), std::addressof(key), sizeof(K));
    std::memcpy(slot.bytes() + value_offset, std::addressof(*value), sizeof(V));
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
    for (std::uint32_t w = 0; w < worker_count(); ++w)
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

  template <class F>
  static void visit(const table& t, std::uint64_t begin, std::uint64_t end, const F& f) {
    if (end - begin <= 4 * batch) {
      for (std::uint64_t b = begin; b < end; b += batch) visit_batch(t, b, std::min(b + batch, end), f);
      return;
    }
    const std::uint64_t middle = begin + (end - begin) / 2;
    invoke([t, begin, middle, f] { visit(t, begin, middle, f); },
           [t, middle, end, f] { visit(t, middle, end, f); });
  }
  /// The copies lie in the frame, so f may let the thread leave.
  template <class F>
  static void visit_batch(const table& t, std::uint64_t begin, std::uint64_t end, F& f) {
    image_of<batch * bucket_bytes> all;
    get(global_ptr<std::uint64_t>(t.at + begin * bucket_bytes), all.words, (end - begin) * bucket_bytes / 8);
    for (std::uint64_t b = 0; b < end - begin; ++b) {
      visit_bucket(all.words + b * bucket_bytes / 8, f);
      for (address next = all.words[b * bucket_bytes / 8 + 1]; next != 0;) {
        image_of<bucket_bytes> more;
        get(global_ptr<std::uint64_t>(next), more.words, bucket_bytes / 8);
        visit_bucket(more.words, f);
        next = more.words[1];
      }
    }
  }
  template <class F>
  static void visit_bucket(const std::uint64_t* words, F& f) {
    for (std::uint64_t left = (words[0] & all_slots) >> 1; left != 0; left &= left - 1) {
      const std::uint64_t* slot =
          words + (head_bytes + static_cast<unsigned>(std::countr_zero(left)) * slot_bytes) / 8;
      f(detail::from_bytes<K>(slot),
        detail::from_bytes<V>(reinterpret_cast<const std::byte*>(slot) + value_offset));
    }
  }

  global_ptr<control> lines_;
  std::uint32_t run_ = 0;
};

}  // namespace godwit
