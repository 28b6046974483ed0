// global_map<K, V>: a hash map in global memory, spread over all homes, used by any number of threads at
// once.
//
//   gw::global_map<std::uint64_t, long> counts(1'000'000);         // about so many entries will come
//   gw::spawn([m = counts.view()] { m.fetch_add(42, 1); }).join();
//
// Operations on one key happen one after another; what a thread did before it wrote an entry is seen by who
// finds that entry. A bucket that is full is continued by further ones. So the map never fills up, and no
// operation ever waits until others are moved; more entries than it was made for only make it slower, and
// reserve(), between phases, fast again. That is why it does not grow by itself: under concurrent operations
// that would cost every one of them a look at whether it is going on. Cost: inside the host some tens of ns.
// Else find takes 3 round trips, what writes 4, one more per further bucket. Protocol:
// docs/protocols/map.md. Model: models/global_map.pml. Tests: tests/global/map_test.cpp,
// tests/global/map_owning_test.cpp. See docs/containers.md.
#pragma once

#include <godwit/cancel.hpp>
#include <godwit/detail/global_elements.hpp>
#include <godwit/detail/global_owner.hpp>
#include <godwit/global_array.hpp>
#include <godwit/global_map_view.hpp>
#include <godwit/global_memory.hpp>
#include <godwit/move.hpp>
#include <godwit/runtime.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace godwit {

/// The owner of a map: move-only, plain bytes; runs and codec as in global_array.hpp. Threads get view().
template <class K, class V, class Hash = global_hash<K>, class Equal = std::equal_to<K>>
class global_map : private global_map_view<K, V, Hash, Equal> {
  using base = global_map_view<K, V, Hash, Equal>;
  using typename base::address;
  using typename base::control;
  using typename base::table;
  struct bucket {
    std::byte bytes[base::bucket_bytes];
  };

 public:
  using key_type = K;
  using mapped_type = V;
  using view_type = base;

  /// No map yet; allocates nothing. May be a global variable.
  constexpr global_map() noexcept = default;
  /// An empty map in which @p entries find room. Cost: about twice their bytes, spread over all homes, zeroed
  /// by as many threads as are worth it: the calling thread may go on at another worker. Throws what allocate
  /// throws.
  explicit global_map(std::uint64_t entries) : global_map(entries, distribution::blocked()) {}
  /// @p d: how the table is dealt out, also later ones. If it is movable, parts of the table can be moved
  /// while the map is used.
  global_map(std::uint64_t entries, const distribution& d) : how_(d) {
    lines_ =
        allocate<control>(detail::all_workers(), distribution::cyclic(sizeof(control)), alignof(control));
    run_ = detail::hot_run();
    try {
      for (std::uint32_t w = 0; w < detail::all_workers(); ++w) put(lines_ + w, control{});
      set_table(make_table(buckets_for(entries)));
    } catch (...) {
      deallocate(lines_, detail::all_workers());
      throw;
    }
  }
  global_map(const global_map&) = delete;             // godwit: not copied: capture its view(), or move it
  global_map& operator=(const global_map&) = delete;  // godwit: not copied: move it
  global_map(global_map&& other) noexcept : base(other), how_(other.how_) { other.forget(); }
  global_map& operator=(global_map&& other) noexcept {
    if (this != &other) {
      reset();
      static_cast<base&>(*this) = other;
      how_ = other.how_;
      other.forget();
    }
    return *this;
  }
  ~global_map() { reset(); }

  /// Quiet. Free it now. Values that own something are destroyed where they lie, as clear says. Cost: some
  /// deallocations, and one for each bucket that continues another.
  void reset() noexcept {
    if (lines_ != nullptr && run_ == detail::hot_run()) {
      destroy_values();
      free_more(base::more_word);
      free_table(get(table_of(0)));
      deallocate(lines_, detail::all_workers());
    }
    forget();
  }

  /// Give buckets [first, first + n) of the table to worker @p to, with all that lies in the same movable
  /// parts; gw::move says the rest. Buckets that continue them stay where they are. Others may use the map
  /// meanwhile; what is quiet waits until it has ended (join).
  future<move_result> move(std::uint64_t first, std::uint64_t n, std::uint32_t to,
                           detail::place where = detail::place::here()) {
    const table t = this->table_now();
    if (n > t.buckets || first > t.buckets - n)
      detail::index_out_of_range("global_map", first + n, t.buckets);
    return godwit::move(global_ptr<std::byte>(t.at + first * base::bucket_bytes), n * base::bucket_bytes, to,
                        where);
  }
  /// The bucket of @p key, for move. Local.
  std::uint64_t bucket_of(const K& key) const {
    const table t = this->table_now();
    return (base::head_of(t, key) - t.at) / base::bucket_bytes;
  }
  /// The worker that has the bucket of @p key now. Cost: owner_of's.
  std::uint32_t owner_of(const K& key) const {
    return godwit::owner_of(global_ptr<std::byte>(base::head_of(this->table_now(), key)));
  }

  view_type view() const noexcept { return *this; }
  operator view_type() const noexcept { return *this; }  // NOLINT: implicit on purpose

  using base::bucket_count;
  using base::check_invariants;
  using base::contains;
  using base::empty;
  using base::erase;
  using base::fetch_add;
  using base::find;
  using base::for_each;
  using base::insert;
  using base::insert_or_assign;
  using base::insert_or_update;
  using base::load_factor;
  using base::size;
  using base::take;
  using base::to_vector;
  using base::update;

  /// Quiet. Remove all entries; the room stays. By as many threads as are worth it. Values that own something
  /// are destroyed by the workers that have their buckets, all at once (here, if there are no more than a few
  /// buckets): the calling thread may go on at another worker. Also in a cancelled scope. Cost then: a
  /// message per worker.
  void clear() {
    const cancel_shield whole;  // destroyed but not yet cleared, values would be destroyed again
    const table t = this->table_now();
    destroy_values();
    detail::fill_parallel<std::uint64_t>(words_of(t), 0);
    free_more(base::more_word);
    for (std::uint32_t w = 0; w < detail::all_workers(); ++w)
      atomic_store(this->word_of(w, base::count_word), 0, std::memory_order_relaxed);
  }
  /// Quiet. Room for @p entries in all: if the table is smaller, move everything into a new one. Views remain
  /// valid. By as many threads as are worth it; if an exception comes out (no memory), nothing has changed.
  /// Values that own something are moved by their bytes, like all.
  void reserve(std::uint64_t entries) {
    if (buckets_for(entries) > this->table_now().buckets) rehash(entries);
  }
  /// Quiet. The same, also into a smaller table; never below what is needed for what is there.
  void rehash(std::uint64_t entries) {
    const table from = this->table_now();
    const std::uint64_t buckets = buckets_for(std::max(entries, this->size()));
    const table to = make_table(buckets);
    for (std::uint32_t w = 0; w < detail::all_workers(); ++w) {
      put(this->word_of(w, base::old_more_word), get(this->word_of(w, base::more_word)));
      put(this->word_of(w, base::more_word), 0);
    }
    try {
      const base me = *this;
      base::visit(from, 0, from.buckets, [me, to](const K& key, const V& value) {
        me.change_in(
            base::head_of(to, key), key, [&] { return base::given(value); }, [](V&) { return false; });
      });
    } catch (...) {  // nothing here lets the thread leave
      free_more(base::more_word);
      free_table(to);
      for (std::uint32_t w = 0; w < detail::all_workers(); ++w)
        put(this->word_of(w, base::more_word), get(this->word_of(w, base::old_more_word)));
      throw;
    }
    set_table(to);  // GM6: nobody reads the old one any more
    free_more(base::old_more_word);
    free_table(from);
  }

 private:
  friend struct codec<global_map>;
  using base::lines_;
  using base::run_;

  static std::uint64_t buckets_for(std::uint64_t entries) noexcept {
    return entries * 5 / (base::slots * 3) + 1;
  }
  static global_span<std::uint64_t> words_of(const table& t) noexcept {
    return {global_ptr<std::uint64_t>(t.at), t.buckets * base::bucket_bytes / 8};
  }
  void forget() noexcept { static_cast<base&>(*this) = base(); }
  table make_table(std::uint64_t buckets) const {
    distribution d = how_;
    // Blocks of whole buckets, one for each home.
    if (d.how().what == detail::spread::kind::blocked && d.how().block_bytes == 0 && !d.how().movable)
      d = distribution::blocked((buckets + worker_count() - 1) / worker_count() * base::bucket_bytes);
    table t{0, buckets};
    t.at = allocate<std::byte>(buckets * base::bucket_bytes, d, 4096).address();
    try {
      detail::fill_parallel<std::uint64_t>(words_of(t), 0);
    } catch (...) {
      free_table(t);
      throw;
    }
    return t;
  }
  distribution how_ = distribution::blocked();
  global_ptr<table> table_of(std::uint32_t worker) const {
    return global_ptr<table>(this->word_of(worker, 0).address());
  }
  void set_table(const table& t) {
    for (std::uint32_t w = 0; w < detail::all_workers(); ++w) put(table_of(w), t);
  }
  static void free_table(const table& t) noexcept {
    if (t.at != 0) deallocate(global_ptr<std::byte>(t.at), t.buckets * base::bucket_bytes);
  }
  /// Of values that own something. The table must be cleared or freed next.
  void destroy_values() const noexcept {
    if constexpr (base::owning) {
      if (none_counted()) return;
      const base me = *this;
      const table t = get(table_of(0));
      const global_span<bucket> buckets(global_ptr<bucket>(t.at), t.buckets);
      detail::each_where_it_is(
          buckets, [](global_ptr<bucket> b, std::uint64_t) { destroy_in(b.address()); },
          [me](std::uint32_t worker) {
            for (address at = get(me.word_of(worker, base::more_word)); at != 0;
                 at = get(global_ptr<std::uint64_t>(at + base::bucket_bytes)))
              destroy_in(at);
          });
    }
  }
  static void destroy_in(address at) noexcept {
    typename base::template image_of<base::bucket_bytes> b;
    get(global_ptr<std::uint64_t>(at), b.words, base::bucket_bytes / 8);
    put(global_ptr<std::uint64_t>(at), b.words[0] & ~base::all_slots);  // before: nobody destroys them again
    const auto destroy = [](const K&, const V& value) { std::destroy_at(std::addressof(value)); };
    base::visit_bucket(b.words, destroy);
  }
  bool none_counted() const noexcept {
    std::uint64_t n = 0;
    for (std::uint32_t w = 0; w < detail::all_workers(); ++w)
      n += atomic_load(this->word_of(w, base::count_word), std::memory_order_relaxed);
    return n == 0;
  }
  void free_more(std::uint64_t list) noexcept {
    for (std::uint32_t w = 0; w < detail::all_workers(); ++w) {
      const auto head = this->word_of(w, list);
      for (address at = get(head); at != 0;) {
        const address next = get(global_ptr<std::uint64_t>(at + base::bucket_bytes));
        deallocate(global_ptr<std::byte>(at), base::more_bytes);
        at = next;
      }
      put(head, 0);
    }
  }
};

/// As an argument or result the ownership travels.
template <class K, class V, class Hash, class Equal>
struct codec<global_map<K, V, Hash, Equal>> {
  using map = global_map<K, V, Hash, Equal>;
  static void write(writer& w, map& m) {
    if (w.again()) detail::owner_taken_twice("global_map");  // else it would be nobody's
    if (m.lines_ != nullptr) w.hands_over();
    w.put(m.lines_);
    w.put(m.run_);
    w.put(m.how_);
    m.forget();
  }
  static map read(reader& r) {
    if (r.again()) detail::owner_taken_twice("global_map");
    map m;
    m.lines_ = r.template get<decltype(m.lines_)>();
    m.run_ = r.template get<std::uint32_t>();
    m.how_ = r.template get<distribution>();
    return m;
  }
};

template <class K, class V, class Hash, class Equal>
inline constexpr bool relocatable<global_map<K, V, Hash, Equal>> = true;

}  // namespace godwit
