// scheduler: Godwit's workers for the senders of C++26 (std::execution, P2300), and for its parallel
// scheduler (P2079). Substrate threads.
//
//   gw::scheduler here;                                        // in a run
//   auto [sum] = *gw::sync_wait(ex::schedule(here) | ex::then(read) | ex::bulk(ex::par, n, f));
//   gw::background_run run;                                    // for OS threads of the program
//   ex::sync_wait(ex::schedule(gw::scheduler(run)) | ex::then(f));
//
// Only a header: it needs std::execution of the standard library, or stdexec, from wherever the program has
// it. What is scheduled runs in a thread of its own, which may spawn, join and wait. docs/scheduler.md. Test:
// tests/threads/scheduler_test.cpp.
#pragma once

#include <godwit/background_run.hpp>
#include <godwit/detail/promise.hpp>
#include <godwit/task.hpp>
#include <godwit/thread.hpp>

#if defined(__cpp_lib_senders)
#include <execution>
namespace godwit::detail {
namespace exec = std::execution;
}
#elif __has_include(<stdexec/execution.hpp>)
#include <stdexec/execution.hpp>
namespace godwit::detail {
namespace exec = stdexec;
}
#else
#error \
    "godwit/scheduler.hpp needs std::execution, or stdexec (stdexec/execution.hpp) among the include folders"
#endif

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

namespace godwit {

namespace detail {

/// f(begin, end) for parts of [begin, end) of at most @p grain, as threads. Throws what the leftmost throws.
template <class Shape, class F>
void split(Shape begin, Shape end, Shape grain, F& f) {
  if (end - begin <= grain) {
    f(begin, end);
    return;
  }
  const Shape middle = static_cast<Shape>(begin + (end - begin) / 2);
  invoke([&, begin, middle, grain] { split(begin, middle, grain, f); },
         [&, middle, end, grain] { split(middle, end, grain, f); });
}
/// Enough parts for workers that become idle at different times.
template <class Shape>
Shape grain_of(Shape n) noexcept {
  return static_cast<Shape>(
      std::max<std::size_t>(1, static_cast<std::size_t>(n) / (std::size_t{8} * hot_workers())));
}

template <class P>
constexpr bool is_parallel = std::same_as<P, std::remove_cvref_t<decltype(exec::par)>> ||
                             std::same_as<P, std::remove_cvref_t<decltype(exec::par_unseq)>>;
template <template <class> class Kept, class P>  // as senders keep it
constexpr bool is_parallel<Kept<P>> = is_parallel<P>;

template <class Sender>
concept bulk_in_parts = std::same_as<exec::tag_of_t<Sender>, exec::bulk_chunked_t> ||
    std::same_as<exec::tag_of_t<Sender>, exec::bulk_unchunked_t>;

/// A part of an object of type S&&.
template <class S, class Part>
decltype(auto) part_of(Part& part) noexcept {
  if constexpr (std::is_lvalue_reference_v<S>)
    return (part);
  else
    return std::move(part);
}

template <class Receiver>
class scheduled : submission {
 public:
  scheduled(background_run* to, Receiver&& r) : submission{call}, to_(to), receiver_(std::move(r)) {}
  scheduled(scheduled&&) = delete;
  void start() & noexcept { submit(to_, *this); }

 private:
  static void call(submission* s) noexcept {
    auto& self = *static_cast<scheduled*>(s);
    if (exec::get_stop_token(exec::get_env(self.receiver_)).stop_requested())
      exec::set_stopped(std::move(self.receiver_));
    else
      exec::set_value(std::move(self.receiver_));
  }
  background_run* to_;
  Receiver receiver_;
};

}  // namespace detail

/// A scheduler of P2300. Made without a run it stands for the run that it is used in: only threads of a run
/// may start what it schedules. schedule completes in a new thread of normal priority, or with set_stopped if
/// a stop is requested before that begins. bulk, bulk_chunked and bulk_unchunked with par or par_unseq are
/// split in halves among the workers, and complete with an exception of theirs after all have ended. Cost: a
/// created thread; from outside see background_run::submit.
class scheduler {
 public:
  using scheduler_concept = detail::exec::scheduler_tag;
  struct domain;
  class sender;

  scheduler() noexcept = default;
  /// @p run must live as long as what it is used for.
  explicit scheduler(background_run& run) noexcept : run_(&run) {}
  bool operator==(const scheduler&) const noexcept = default;

  sender schedule() const noexcept;
  template <class Tag>
  scheduler query(detail::exec::get_completion_scheduler_t<Tag>) const noexcept {
    return *this;
  }
  template <class Tag>
  domain query(detail::exec::get_completion_domain_t<Tag>) const noexcept;
  auto query(detail::exec::get_forward_progress_guarantee_t) const noexcept {
    return detail::exec::forward_progress_guarantee::weakly_parallel;  // a spinning thread holds up others
  }

 private:
  background_run* run_ = nullptr;
};

/// How algorithms on this scheduler differ from the default.
struct scheduler::domain : detail::exec::default_domain {
  template <detail::bulk_in_parts Sender, class Env>
  static auto transform_sender(detail::exec::set_value_t, Sender&& s, const Env&) {
    auto&& [tag, data, child] = s;
    auto&& [policy, shape, f] = data;
    using Shape = std::remove_cvref_t<decltype(shape)>;
    constexpr bool chunked = std::same_as<std::remove_cvref_t<decltype(tag)>, detail::exec::bulk_chunked_t>;
    constexpr bool parallel = detail::is_parallel<std::remove_cvref_t<decltype(policy)>>;
    auto call = [n = shape, f = detail::part_of<Sender>(f)](auto&... values) mutable {
      auto part = [&](Shape begin, Shape end) {
        if constexpr (chunked)
          f(begin, end, values...);
        else
          for (; begin != end; ++begin) f(begin, values...);
      };
      if (n > 0) detail::split<Shape>(0, n, parallel ? detail::grain_of(n) : n, part);
      return detail::exec::just(std::move(values)...);
    };
    return detail::exec::let_value(detail::part_of<Sender>(child), std::move(call));
  }
};

/// What schedule gives.
class scheduler::sender {
 public:
  using sender_concept = detail::exec::sender_tag;
  template <class, class...>
  static consteval auto get_completion_signatures() noexcept {
    return detail::exec::completion_signatures<detail::exec::set_value_t(), detail::exec::set_stopped_t()>();
  }
  const scheduler& get_env() const noexcept { return scheduler_; }
  template <class Receiver>
  auto connect(Receiver receiver) const {
    return detail::scheduled<Receiver>(run_, std::move(receiver));
  }

 private:
  friend class scheduler;
  sender(const scheduler& s, background_run* run) noexcept : scheduler_(s), run_(run) {}
  scheduler scheduler_;
  background_run* run_;
};

inline scheduler::sender scheduler::schedule() const noexcept { return {*this, run_}; }
template <class Tag>
scheduler::domain scheduler::query(detail::exec::get_completion_domain_t<Tag>) const noexcept {
  return {};
}

namespace detail {

/// In the frame of a thread that waits for a sender.
template <class Values>
struct awaited {
  ref done = 0;
  std::optional<Values> values;
  std::exception_ptr error;
};

template <class Values>
struct awaiting_receiver {
  using receiver_concept = exec::receiver_tag;
  awaited<Values>* to;

  template <class... V>
  void set_value(V&&... v) && noexcept {
    try {
      to->values.emplace(std::forward<V>(v)...);
    } catch (...) {
      to->error = std::current_exception();
    }
    keep_promise(to->done);
  }
  template <class E>
  void set_error(E&& e) && noexcept {
    if constexpr (std::same_as<std::remove_cvref_t<E>, std::exception_ptr>)
      to->error = std::forward<E>(e);
    else
      to->error = std::make_exception_ptr(std::forward<E>(e));
    keep_promise(to->done);
  }
  void set_stopped() noexcept { keep_promise(to->done); }  // (stdexec has lvalues of it)
};

template <class... V>
using decayed_tuple = std::tuple<std::decay_t<V>...>;
/// Of the ways in which a sender completes with values: the only one. Nothing: it never does.
template <class... Ways>
struct only_way;
template <class Way>
struct only_way<Way> : std::type_identity<Way> {};
template <>
struct only_way<> : std::type_identity<std::tuple<>> {};

}  // namespace detail

/// As std::this_thread::sync_wait, for threads of a run: the calling thread is suspended, and its worker goes
/// on (the standard's would keep it). @p sender must complete in a thread of the run, as what scheduler
/// schedules does. Gives back its values; nothing if it was stopped; throws its error.
template <class Sender>
auto sync_wait(Sender&& sender) {
  using Values = typename detail::exec::value_types_of_t<Sender, detail::exec::env<>, detail::decayed_tuple,
                                                         detail::only_way>::type;
  detail::need_substrate_threads("sync_wait of a sender");
  detail::awaited<Values> result;
  auto operation =
      detail::exec::connect(std::forward<Sender>(sender), detail::awaiting_receiver<Values>{&result});
  result.done = detail::make_promised();  // only now: connect may throw
  detail::exec::start(operation);
  static_cast<void>(detail::wait(result.done, "godwit::sync_wait", "sync_wait", 0));
  detail::release(result.done);
  if (result.error) std::rethrow_exception(std::move(result.error));
  return std::move(result.values);
}

/// The parallel scheduler of the program (P2079) on a background run. Give it back from the function that the
/// standard lets programs replace:
///   std::shared_ptr<psr::parallel_scheduler_backend> psr::query_parallel_scheduler_backend() {
///     static const auto backend = std::make_shared<gw::parallel_backend>();
///     return backend;
///   }
class parallel_backend final
    : public detail::exec::parallel_scheduler_replacement::parallel_scheduler_backend {
  using storage = std::span<std::byte>;
  using proxy = detail::exec::parallel_scheduler_replacement::receiver_proxy;
  using item_proxy = detail::exec::parallel_scheduler_replacement::bulk_item_receiver_proxy;

 public:
  explicit parallel_backend(const options& base = {}) : run_(base) {}

  void schedule(proxy& r, storage room) noexcept override {
    begin(room, r, [&r] { r.set_value(); });
  }
  void schedule_bulk_chunked(std::size_t n, item_proxy& r, storage room) noexcept override {
    begin(room, r, [&r, n] { all(n, r, [&r](std::size_t b, std::size_t e) { r.execute(b, e); }); });
  }
  void schedule_bulk_unchunked(std::size_t n, item_proxy& r, storage room) noexcept override {
    begin(room, r, [&r, n] {
      all(n, r, [&r](std::size_t b, std::size_t e) {
        for (; b != e; ++b) r.execute(b, b + 1);
      });
    });
  }

 private:
  template <class Part>
  static void all(std::size_t n, item_proxy& r, Part part) {
    try {
      if (n != 0) detail::split(std::size_t{0}, n, detail::grain_of(n), part);
    } catch (const cancelled&) {
      return r.set_stopped();
    }
    r.set_value();
  }
  /// f(), in the room if that is enough, unless a stop is requested before it begins.
  template <class F>
  void begin(storage room, proxy& r, F f) noexcept {
    struct work : detail::submission {
      work(proxy& p, F g, bool heap) : submission{call}, r(p), f(std::move(g)), on_heap(heap) {}
      static void call(submission* s) noexcept {
        const std::unique_ptr<work> kept(static_cast<work*>(s)->on_heap ? static_cast<work*>(s) : nullptr);
        work w = *static_cast<work*>(s);  // whoever is told that it is done may free the room
        using token = detail::exec::inplace_stop_token;
        const auto stop = w.r.template try_query<token>(detail::exec::get_stop_token);
        if (stop && stop->stop_requested())
          w.r.set_stopped();
        else
          w.f();
      }
      proxy& r;
      F f;
      bool on_heap;
    };
    void* at = room.data();
    std::size_t bytes = room.size();
    if (std::align(alignof(work), sizeof(work), at, bytes) != nullptr)
      detail::submit(&run_, *new (at) work(r, std::move(f), false));
    else
      detail::submit(&run_, *new work(r, std::move(f), true));
  }
  background_run run_;
};

}  // namespace godwit
