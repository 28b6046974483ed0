// worker_local<T>: a T for each worker that asks for one; made there, and ended there with the run.
//
//   const gw::worker_local<std::vector<hit>> hits;             // a handle: plain bytes, captured by value
//   gw::for_each(all, [hits](const item& i) { if (fits(i)) hits->push_back({i}); });
//   auto sum = counts.combine(std::plus<>());                  // after the work, in order of the workers
//
// What a thread may keep: a reference to its worker's T until its next spawn, join, lock or yield. After that
// it may be at another worker: ask again. Not thread_specific, which follows the thread; and sums of
// floating-point numbers depend on the schedule. On every substrate, and between hosts.
// docs/worker-local.md. Code: src/runtime/worker_local.cpp. Test: tests/global/worker_local_test.cpp.
#pragma once

#include <godwit/detail/hot.hpp>
#include <godwit/global_access.hpp>
#include <godwit/global_memory.hpp>
#include <godwit/spawn_at.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace godwit {

namespace detail {

/// What a worker has of one worker_local. W, R its worker; and who is sent there, while it does nothing else.
struct local_value {
  std::uint64_t number = 0;  ///< of the worker_local; 0: free
  void* value = nullptr;     ///< null: destroyed
  void (*destroy)(void*) noexcept = nullptr;
};
/// All that a worker has: open addressing by the number, never full.
struct local_table {
  local_value* values;
  std::uint64_t mask;  ///< places - 1
  std::uint64_t used;  ///< places with a number
};

/// A number that no other worker_local of the run has, whichever worker made it.
std::uint64_t new_local_number() noexcept;
void add_local(const local_value& v);
/// The values here: of this worker, and of spare ones by the first of their host.
std::vector<void*> locals_here(std::uint64_t number);
void destroy_locals_here(std::uint64_t number) noexcept;
/// At the end of the calling worker.
void end_locals() noexcept;
[[noreturn]] void local_outside_run() noexcept;

[[gnu::always_inline]] inline void* find_local(std::uint64_t number) noexcept {
  const auto* table = hot_load<offsetof(hot_words, locals), const local_table*>();
  if (table == nullptr) [[unlikely]]
    return nullptr;
  for (std::uint64_t i = number;; ++i) {
    const local_value& v = table->values[i & table->mask];
    if (v.number == number) [[likely]]
      return v.value;
    if (v.number == 0) return nullptr;
  }
}

/// In lines of its own: other workers write beside it.
template <class T>
struct alignas(64) local_box {
  T value;
};

template <class T>
struct made_by_default {
  T operator()() const { return T(); }
};

/// Threads that were sent to workers. Global memory says which they are: who waits for them may go on at a
/// worker that has another heap.
template <class Part>
class sent_threads {
 public:
  explicit sent_threads(std::uint32_t most)
      : records_(allocate<ref>(most, distribution::local())), most_(most) {}
  ~sent_threads() {
    while (taken_ != count_) detach(take());
    deallocate(records_, most_);
  }
  sent_threads(const sent_threads&) = delete;
  sent_threads& operator=(const sent_threads&) = delete;

  void add(future<Part> f) { put(records_ + count_++, future_access::take_record(f)); }
  /// May migrate the thread.
  void wait_for_all(const place& where) const {
    for (std::uint32_t i = 0; i < count_; ++i)
      static_cast<void>(wait(get(records_ + i), where.file, where.function, where.line));
  }
  /// When all have ended.
  std::vector<Part> join(const place& where) {
    std::vector<Part> parts;
    while (taken_ != count_) parts.push_back(future_access::of<Part>(take()).join(where));
    return parts;
  }

 private:
  ref take() { return get(records_ + taken_++); }

  const global_ptr<ref> records_;
  const std::uint32_t most_;
  std::uint32_t count_ = 0, taken_ = 0;
};

}  // namespace detail

/// A handle of plain bytes; copies stand for the same values. Made by main, as a global for example, or in a
/// thread. Each worker's T begins, when a thread there first asks, as what @p Make gives back, and is
/// destroyed when the run ends, on that worker, or by clear. Its destructor must not spawn, join or wait
/// then. Of a run that fails nothing is destroyed. @p Make: plain bytes.
template <class T, class Make = detail::made_by_default<T>>
class worker_local {
  static_assert(plain<Make>,
                "godwit::worker_local: what makes the values is copied to every worker: it must "
                "be plain bytes");

 public:
  worker_local() requires std::is_default_constructible_v<Make> : number_(detail::new_local_number()) {}
  explicit worker_local(Make make) : number_(detail::new_local_number()), make_(std::move(make)) {}

  /// The calling thread's worker's. Cost: some loads, a few nanoseconds; the first on a worker an allocation.
  /// Ends the program outside a run.
  T& local() const {
    if (void* v = detail::find_local(number_)) [[likely]]
      return *static_cast<T*>(v);
    return make();
  }
  T& operator*() const { return local(); }
  T* operator->() const { return &local(); }

  /// f(T&) for each value there is, each on its worker, several workers at a time, when the threads there
  /// have ended or wait. For after the work: it must not spawn, join or wait. f as for spawn_at, which it
  /// costs once per worker. Throws what f throws, after all; global_bad_alloc. May migrate the calling
  /// thread.
  template <class F>
  void for_each(F f, detail::place where = detail::place::here()) const {
    at_each([](worker_local values, F& g) { return values.each_here(g), true; }, f, where);
  }

  /// op(op(a, b), c)... of copies of all values in order of the workers; nothing if there are none. The
  /// values stay. Between hosts T needs a codec. Otherwise as for_each.
  template <class Op>
  std::optional<T> combine(Op op, detail::place where = detail::place::here()) const {
    std::optional<T> all;
    const auto copies = [](worker_local values, none&) {
      std::vector<T> found;
      values.each_here([&](const T& v) { found.push_back(v); });
      return found;
    };
    none nothing;
    for (std::vector<T>& part : at_each(copies, nothing, where))
      for (auto&& v : part) {
        T own(std::move(v));  // std::vector<bool> has no bools
        if (all)
          *all = op(std::move(*all), std::move(own));
        else
          all.emplace(std::move(own));
      }
    return all;
  }

  /// Destroy all values, each on its worker; whoever asks afterwards gets a new one. Otherwise as for_each.
  void clear(detail::place where = detail::place::here()) const {
    none nothing;
    at_each([](worker_local values, none&) { return detail::destroy_locals_here(values.number_), true; },
            nothing, where);
  }

 private:
  struct none {};

  [[gnu::noinline]] T& make() const {
    if (detail::hot_workers() == 0) detail::local_outside_run();
    using box = detail::local_box<T>;
    auto* made = new box{Make(make_)()};
    detail::add_local({number_, &made->value, [](void* v) noexcept { delete static_cast<box*>(v); }});
    return made->value;
  }
  template <class F>
  void each_here(F&& f) const {
    for (void* v : detail::locals_here(number_)) f(*static_cast<T*>(v));
  }
  /// Without bytes between its members, which not every compiler can clear (relocated).
  template <class Visit, class F>
  struct at_one {
    worker_local self;
    [[no_unique_address]] Visit visit;
    [[no_unique_address]] F f;
    auto operator()() { return visit(self, f); }
  };
  /// What visit(*this, f) gives back on each worker, in order.
  template <class Visit, class F>
  auto at_each(Visit visit, F& f, const detail::place& where) const {
    using part = std::invoke_result_t<Visit&, worker_local, F&>;
    detail::sent_threads<part> all(worker_count());
    for (std::uint32_t w = 0; w < worker_count(); ++w)
      all.add(spawn_at(worker(w), at_one<Visit, F>{*this, visit, f}));
    all.wait_for_all(where);
    return all.join(where);
  }

  std::uint64_t number_;
  [[no_unique_address]] Make make_;
};

template <class Make>
worker_local(Make) -> worker_local<std::invoke_result_t<Make&>, Make>;

}  // namespace godwit
