// Entry points: target regions and their data. There is no device: all of it is on the host, where a variable
// and its mapped copy are the same.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <strings.h>

#include "entry.hpp"
#include "settings.hpp"
#include "task.hpp"
#include "team.hpp"

using namespace godwit::openmp;

using function = void(void*);

namespace {

/// The compiler passes a list that ends with null: a word with what it is and its value, or two. 0: none.
unsigned thread_limit_in(void* const* arguments) noexcept {
  constexpr std::uintptr_t of_all_devices = 0, devices = 0x7f, value_follows = 0x80, kinds = 0xff00,
                           thread_limit = 0x200;
  while (arguments != nullptr && *arguments != nullptr) {
    const auto what = reinterpret_cast<std::uintptr_t>(*arguments++);
    const auto value = (what & value_follows) != 0 ? reinterpret_cast<std::intptr_t>(*arguments++)
                                                   : static_cast<std::intptr_t>(what) >> 16;
    if ((what & devices) == of_all_devices && (what & kinds) == thread_limit && value > 0)  // -1: no clause
      return static_cast<unsigned>(std::min<std::intptr_t>(value, 0x7FFFFFFF));
  }
  return 0;
}

/// A region of one thread, outside all others. @p thread_limit: 0: as usual.
void run_on_host(function* f, void** addresses, unsigned thread_limit = 0) noexcept {
  if (const char* v = std::getenv("OMP_TARGET_OFFLOAD"); v != nullptr && ::strcasecmp(v, "mandatory") == 0)
    fail("OMP_TARGET_OFFLOAD=mandatory: target regions run on the host only (run the program with libgomp)");
  team& m = begin_region(f, addresses, 1, nullptr, nullptr, nullptr);
  m.level = m.active_level = 0;
  m.others = &m.own_others;
  m.members[0]->implicit.own = &environment_.initial;
  if (thread_limit != 0) change_settings(self(), [&](settings& s) { s.thread_limit = thread_limit; });
  f(addresses);
  end_region();
}

void wait_before(void** depend) noexcept {
  if (depend != nullptr) wait_for_dependences(self(), depend);
}

/// What the region has of its own: the compiler passes where it lies outside, its size, and in 16 bits its
/// kind and the logarithm of its alignment.
class private_copies {
 public:
  private_copies(std::size_t count, void** addresses, const std::size_t* sizes,
                 const unsigned short* kinds) noexcept {
    constexpr unsigned first_private = 12, kind_bits = 8;
    std::size_t bytes = 0;
    const auto for_each = [&](auto f) {
      for (std::size_t i = 0; i < count; ++i)
        if ((kinds[i] & ((1u << kind_bits) - 1)) == first_private)
          f(addresses[i], sizes[i], std::size_t{1} << (kinds[i] >> kind_bits));
    };
    for_each([&](void*, std::size_t size, std::size_t align) { bytes += size + align; });
    if (bytes == 0) return;
    block_ = static_cast<char*>(std::malloc(bytes));
    if (block_ == nullptr) fail("out of memory for a target region's %zu bytes", bytes);
    char* at = block_;
    for_each([&](void*& address, std::size_t size, std::size_t align) {
      at += (0 - reinterpret_cast<std::uintptr_t>(at)) % align;
      address = std::memcpy(at, address, size);
      at += size;
    });
  }
  ~private_copies() { std::free(block_); }
  private_copies(const private_copies&) = delete;
  private_copies& operator=(const private_copies&) = delete;

 private:
  char* block_ = nullptr;
};

}  // namespace

OPENMP_ENTRY void GOMP_target(int, function* f, const void*, std::size_t, void** addresses, std::size_t*,
                              unsigned char*) {
  run_on_host(f, addresses);
}
/// With `nowait`, too, it has ended when this returns.
OPENMP_ENTRY void GOMP_target_ext(int, function* f, std::size_t count, void** addresses, std::size_t* sizes,
                                  unsigned short* kinds, unsigned, void** depend, void** arguments) {
  wait_before(depend);
  const private_copies own(count, addresses, sizes, kinds);
  run_on_host(f, addresses, thread_limit_in(arguments));
}

OPENMP_ENTRY void GOMP_target_data(int, const void*, std::size_t, void**, std::size_t*, unsigned char*) {}
OPENMP_ENTRY void GOMP_target_data_ext(int, std::size_t, void**, std::size_t*, unsigned short*) {}
OPENMP_ENTRY void GOMP_target_end_data() {}
OPENMP_ENTRY void GOMP_target_update(int, const void*, std::size_t, void**, std::size_t*, unsigned char*) {}
OPENMP_ENTRY void GOMP_target_update_ext(int, std::size_t, void**, std::size_t*, unsigned short*, unsigned,
                                         void** depend) {
  wait_before(depend);
}
OPENMP_ENTRY void GOMP_target_enter_exit_data(int, std::size_t, void**, std::size_t*, unsigned short*,
                                              unsigned, void** depend) {
  wait_before(depend);
}

/// Of gcc before 12: a league of one team.
OPENMP_ENTRY void GOMP_teams(unsigned, unsigned thread_limit) {
  if (thread_limit != 0) change_settings(self(), [&](settings& s) { s.thread_limit = thread_limit; });
}
/// The program calls it until it is false, and runs the next team each time.
OPENMP_ENTRY bool GOMP_teams4(unsigned, unsigned most_teams, unsigned thread_limit, bool first) {
  thread& t = self();
  const settings& now = settings_of(*t.current);
  if (!first && now.team_number + 1 >= now.team_count) return false;
  change_settings(t, [&](settings& s) {
    s.team_number = first ? 0 : s.team_number + 1;
    if (first) s.team_count = most_teams != 0 ? most_teams : default_teams_ != 0 ? default_teams_ : 1;
    if (first && thread_limit != 0) s.thread_limit = thread_limit;
  });
  return true;
}
