// The table of a global_map: what a bucket looks like, how it is read, searched and locked. Not an interface
// for users.
//
// Nothing here knows the owner, the count or who continues buckets: global_map_view.hpp, which calls it, as
// does global_map.hpp. Protocol, with the labels: docs/protocols/map.md. Model: models/global_map.pml.
// Tests: tests/global/map_test.cpp.
#pragma once

#include <godwit/detail/control_path.hpp>
#include <godwit/detail/global_elements.hpp>
#include <godwit/detail/global_owner.hpp>
#include <godwit/global_access.hpp>
#include <godwit/global_atomic.hpp>
#include <godwit/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace godwit::detail {

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

template <std::size_t Bytes>
struct map_image {
  std::uint64_t words[Bytes / 8];
  std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(words); }
  const std::byte* bytes() const noexcept { return reinterpret_cast<const std::byte*>(words); }
};

/// Values of V may be put into a map, taken out and looked at, but not be given to several.
template <class V>
constexpr void require_map_copies() {
  static_assert(
      !owning_element<V>,
      "godwit::global_map: values that own something have one owner and are not copied: move one in "
      "(insert(key, std::move(v))), look at it where it is (find(key, f), update), get it out "
      "(take)");
}

template <class K, class V, class Hash, class Equal>
struct map_table {
  using address = global_address;
  template <std::size_t Bytes>
  using image_of = map_image<Bytes>;

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

  // Every worker, spare ones too, has a line of its own at home: nobody has to look elsewhere for the table.
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

  static constexpr bool owning = owning_element<V>;
  using bytes_of_value = owned_bytes<V>;
  /// What a new entry begins with: a value; of values that own something whose bytes it takes over. Or none.
  using fresh = std::conditional_t<owning, const V*, std::optional<V>>;
  static fresh given(const V& value) noexcept {
    if constexpr (owning)
      return std::addressof(value);
    else
      return value;
  }
  /// The value in a slot as bytes that are nobody's, or somebody else's: not destroyed by themselves.
  static bytes_of_value value_in(const image_of<slot_bytes>& slot) noexcept {
    bytes_of_value v;
    std::memcpy(v.bytes, slot.bytes() + value_offset, sizeof(V));
    return v;
  }
  static void exchange_bytes(V& a, V& b) noexcept {
    std::byte was[sizeof(V)];
    std::memcpy(was, static_cast<const void*>(std::addressof(a)), sizeof(V));
    std::memcpy(static_cast<void*>(std::addressof(a)), static_cast<const void*>(std::addressof(b)),
                sizeof(V));
    std::memcpy(static_cast<void*>(std::addressof(b)), was, sizeof(V));
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
      to[i] = std::atomic_ref(*global_raw<std::uint64_t>(at + i * 8)).load(std::memory_order_relaxed);
  }
  static void store_slot(address at, const image_of<slot_bytes>& slot) {
    if (!global_is_plain()) return global_put(at, slot.words, slot_bytes);
    for (std::size_t i = 0; i < slot_bytes / 8; ++i)
      std::atomic_ref(*global_raw<std::uint64_t>(at + i * 8)).store(slot.words[i], std::memory_order_relaxed);
  }
  /// State of a bucket that continues another, or who comes next.
  static void store_word(address at, std::uint64_t v) {
    if (!global_is_plain()) {
      std::atomic_thread_fence(std::memory_order_release);  // GM3: contents first, where it is this host's
      return global_put(at, &v, 8);                         // GM5: they are home
    }
    // GM3: contents first
    std::atomic_ref(*global_raw<std::uint64_t>(at)).store(v, std::memory_order_release);
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
      if (global_is_plain()) [[likely]] {
        if (at != head) load_words(at, &state, 1);
        for (std::uint64_t left = (state & all_slots) >> 1; left != 0; left &= left - 1) {
          const auto i = static_cast<unsigned>(std::countr_zero(left));
          std::uint64_t words[key_words];
          load_words(slot_of(at, i), words, key_words);
          if (!Equal()(from_bytes<K>(words), key)) continue;
          load_words(slot_of(at, i), slot.words, slot_bytes / 8);
          s.bucket = at;
          s.state = state;
          s.index = i;
          return s;
        }
        // GM3: link, then contents
        next = std::atomic_ref(*global_raw<std::uint64_t>(at + 8)).load(std::memory_order_acquire);
      } else {
        image_of<bucket_bytes> b;
        // GM3, GM5: link, then contents, and from no copy that this host made before
        if (at != head) global_fence();
        global_get(at, b.words, bucket_bytes);
        if (at != head) state = b.words[0];
        for (std::uint64_t left = (state & all_slots) >> 1; left != 0; left &= left - 1) {
          const auto i = static_cast<unsigned>(std::countr_zero(left));
          const std::byte* there = b.bytes() + head_bytes + i * slot_bytes;
          if (!Equal()(from_bytes<K>(there), key)) continue;
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
      map_backoff backoff;
      for (;; backoff.wait()) {
        if (global_is_plain()) {
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
      const std::byte* value = reinterpret_cast<const std::byte*>(slot) + value_offset;
      if constexpr (owning_element<V>) {
        owned_bytes<V> v;  // still the table's
        std::memcpy(v.bytes, value, sizeof(V));
        f(from_bytes<K>(slot), std::as_const(v.value()));
      } else {
        f(from_bytes<K>(slot), from_bytes<V>(value));
      }
    }
  }
};

}  // namespace godwit::detail
