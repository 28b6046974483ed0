// How one worker reaches the memory of any host: by the window if it is this host's, else by requests.
//
// The home of an address is a worker number here; which host that is on is all that matters. Sections keep
// the expose signal out while a request is under way. Cost: near a load or store, far one round trip each.
// Tests: tests/gas for one host, tests/global under MPI.
#pragma once

#include "base/unexposed.hpp"
#include "gas/part_event.hpp"
#include "gas/words.hpp"
#include "transport/far/fabric.hpp"
#include "transport/shm/window.hpp"

#include <godwit/options.hpp>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

namespace godwit {
struct worker_stats;
}

namespace godwit::gas {

using transport::worker_no;
using transport::far::atomic_function;

class translations;

struct reach_setup {
  transport::fabric* net = nullptr;
  std::byte* window = nullptr;
  std::uint32_t me = 0;
  std::uint32_t workers = 0;
  const transport::shm::near_range* hosts = nullptr;
  std::uint32_t host_count = 1;
  std::uint32_t my_host = 0;
  worker_stats* stats = nullptr;  ///< may be null with one host
  part_note note_part = nullptr;  ///< may be null: nobody wants to see it
  bool heat_told = false;         ///< somebody wants to know how movable memory was used
  translations* hints = nullptr;
  choice::directory directory = choice::directory::software;
  access_note note_access = nullptr;  ///< may be null, too
};

/// memcpy, but a word that is aligned at both ends is copied by one load and one store: others may write it.
inline void copy_bytes(void* to, const void* from, std::size_t n) noexcept {
  const auto places = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  const auto copy_word = [&]<class Word>(Word*) {
    __atomic_store_n(static_cast<Word*>(to),
                     __atomic_load_n(static_cast<const Word*>(from), __ATOMIC_RELAXED), __ATOMIC_RELAXED);
  };
  if (n == sizeof(std::uint64_t) && places % sizeof(std::uint64_t) == 0)
    copy_word(static_cast<std::uint64_t*>(nullptr));
  else if (n == sizeof(std::uint32_t) && places % sizeof(std::uint32_t) == 0)
    copy_word(static_cast<std::uint32_t*>(nullptr));
  else if (n == sizeof(std::uint16_t) && places % sizeof(std::uint16_t) == 0)
    copy_word(static_cast<std::uint16_t*>(nullptr));
  else
    std::memcpy(to, from, n);
}

struct atomic_operands {
  std::uint64_t a = 0, expected = 0;
};

class reach {
 public:
  explicit reach(const reach_setup& s) noexcept : s_(s) {}

  bool is_near(std::uint32_t home) const noexcept { return s_.hosts[s_.my_host].holds(worker_no{home}); }
  std::uint32_t host_of(std::uint32_t home) const noexcept {
    auto below = [](std::uint32_t h, const transport::shm::near_range& host) { return h < host.first; };
    return static_cast<std::uint32_t>(std::upper_bound(s_.hosts, s_.hosts + s_.host_count, home, below) -
                                      s_.hosts - 1);  // hosts are in the order of their workers
  }
  bool holds(std::uint32_t host, std::uint32_t home) const noexcept {
    return s_.hosts[host].holds(worker_no{home});
  }
  std::uint32_t first_of(std::uint32_t host) const noexcept { return s_.hosts[host].first; }
  std::uint32_t host_count() const noexcept { return s_.host_count; }
  bool several_hosts() const noexcept { return s_.host_count > 1; }
  std::uint32_t my_host() const noexcept { return s_.my_host; }
  std::uint32_t me() const noexcept { return s_.me; }
  transport::far::port& port() const noexcept { return s_.net->far(); }
  worker_stats& stats() const noexcept { return *s_.stats; }
  /// Somebody wants to see what happens to parts of movable memory.
  bool seen() const noexcept { return s_.note_part != nullptr; }
  void note(const part_event& e) const noexcept { s_.note_part(e); }
  void note(const access_event& e) const noexcept {
    if (s_.note_access != nullptr) s_.note_access(e);
  }
  /// What parts were used is to be known after they are gone. Counted with several hosts only.
  bool heat_told() const noexcept { return s_.heat_told && several_hosts(); }
  /// Small accesses to movable memory of other hosts go by datagram (routed.hpp), ...
  bool has_datagrams() const noexcept {
    return several_hosts() && s_.directory != choice::directory::software;
  }
  /// ... and a switch knows who has it.
  bool has_switch() const noexcept { return has_datagrams() && s_.directory != choice::directory::datagrams; }
  /// Who is asked for movable memory: translations.hpp.
  translations& hints() const noexcept { return *s_.hints; }

  template <class T = std::byte>
  T* at(global_address a) const noexcept {
    return reinterpret_cast<T*>(s_.window + a);
  }
  global_address address_of(const void* p) const noexcept {
    return static_cast<global_address>(static_cast<const std::byte*>(p) - s_.window);
  }
  /// GL10: by which bit of which word this worker says that it evicts. There are evicting_words() of them.
  std::pair<word&, std::uint64_t> my_evicting() const noexcept {
    const std::uint32_t n = me() - first_of(my_host());
    return {home(n / 64).evicting, std::uint64_t{1} << n % 64};
  }
  std::uint32_t evicting_words() const noexcept {
    std::uint32_t most = 0;
    for (std::uint32_t h = 0; h < host_count(); ++h) most = std::max(most, s_.hosts[h].count);
    return (most + 63) / 64;
  }
  /// Words of this host.
  host_words& host() const noexcept { return *at<host_words>(space::words_low); }
  home_words& home(std::uint32_t worker) const noexcept {
    return at<home_words>(space::words_low + sizeof(host_words))[worker];
  }

  void get(std::uint32_t home, void* to, global_address from, std::size_t n) const noexcept {
    if (is_near(home)) {
      std::memcpy(to, at(from), n);
    } else {
      const base::unexposed inside;
      port().get(worker_no{home}, to, at(from), n);
    }
  }
  /// There when it returns.
  void put(std::uint32_t home, global_address to, const void* from, std::size_t n) const noexcept {
    if (is_near(home)) {
      std::memcpy(at(to), from, n);
    } else {
      const base::unexposed inside;
      port().put(worker_no{home}, at(to), from, n);
      if (n <= transport::far::inline_bytes) port().fence(worker_no{home});
    }
  }
  std::uint64_t atomic(std::uint32_t home, global_address a, atomic_function f, unsigned width,
                       std::uint64_t operand, std::uint64_t expected = 0) const noexcept {
    if (is_near(home)) return transport::far::apply_atomic(f, at(a), width, operand, expected);
    const base::unexposed inside;
    return port().atomic(worker_no{home}, f, at(a), width, operand, expected);
  }
  // A word at the host of @p home, whose address is that of our own host's @p w.
  std::uint64_t remote_load(std::uint32_t home, const word& w) const noexcept {
    return atomic(home, address_of(&w), atomic_function::load, 8, 0);
  }
  void remote_store(std::uint32_t home, const word& w, std::uint64_t v) const noexcept {
    atomic(home, address_of(&w), atomic_function::store, 8, v);
  }
  void remote_add(std::uint32_t home, const word& w, std::uint64_t v) const noexcept {
    atomic(home, address_of(&w), atomic_function::fetch_add, 8, v);
  }
  /// False: @p expected becomes what it is instead.
  bool remote_compare_exchange(std::uint32_t home, const word& w, std::uint64_t& expected,
                               std::uint64_t v) const noexcept {
    const std::uint64_t wanted = expected;
    expected = atomic(home, address_of(&w), atomic_function::compare_exchange, 8, v, wanted);
    return expected == wanted;
  }

  // The same word at every host. Other hosts do not wait for each other: some round trips for all.
  /// The atomic @p f where give(host) has operands for it; take(host, f's result), this host's first.
  template <class Give, class Take>
  void at_hosts(atomic_function f, const word& w, Give&& give, Take&& take) const {
    std::vector<transport::far::port::far_word> far;
    std::vector<std::uint32_t> hosts;
    for (std::uint32_t h = 0; h < host_count(); ++h) {
      const std::optional<atomic_operands> o = give(h);
      if (!o) continue;
      if (h == my_host()) {
        take(h, transport::far::apply_atomic(f, at(address_of(&w)), sizeof w, o->a, o->expected));
      } else {
        far.push_back({worker_no{first_of(h)}, o->a, o->expected, 0});
        hosts.push_back(h);
      }
    }
    if (far.empty()) return;
    {
      const base::unexposed inside;
      port().atomics(f, &w, far);
    }
    for (std::size_t i = 0; i < far.size(); ++i) take(hosts[i], far[i].result);
  }
  /// @p amount (host): nothing is done where it is 0.
  template <class Amount>
  void add_at_hosts(const word& w, Amount&& amount) const {
    at_hosts(
        atomic_function::fetch_add, w,
        [&](std::uint32_t h) {
          const std::uint64_t n = amount(h);
          return n != 0 ? std::optional(atomic_operands{n, 0}) : std::nullopt;
        },
        [](std::uint32_t, std::uint64_t) {});
  }
  void increment_at_hosts(const word& w) const {
    add_at_hosts(w, [](std::uint32_t) { return 1; });
  }
  /// All hosts but this one: for each its first worker.
  std::vector<worker_no> other_hosts() const {
    std::vector<worker_no> firsts;
    for (std::uint32_t h = 0; h < host_count(); ++h)
      if (h != my_host()) firsts.push_back(worker_no{first_of(h)});
    return firsts;
  }

 private:
  const reach_setup s_;
};

}  // namespace godwit::gas
