// See heap.hpp.
#include "heap/heap.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <new>
#include <string_view>
#include <sys/sysinfo.h>
#include <unistd.h>
#include <utility>

#include "base/check.hpp"
#include "base/own_memory.hpp"
#include "heap/malloc.hpp"
#include "heap/part.hpp"
#include "heap/pool.hpp"
#include "heap/record.hpp"
#include "heap/waits.hpp"
#include "transport/shm/window.hpp"

extern "C" {
[[gnu::weak]] extern char __libc_single_threaded;
[[gnu::weak]] std::size_t __sanitizer_get_allocated_size(
    const volatile void*);  // of those that replace malloc
}

namespace godwit::heap {

namespace {
std::uint64_t up(std::uint64_t v, std::uint64_t to) noexcept { return (v + to - 1) / to * to; }

/// What the system would give a process at a time: it refuses what it can never have.
std::uint64_t largest_block() noexcept {
  int allows = 0;
  if (const int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC); fd >= 0) {
    char text = '0';
    if (read(fd, &text, 1) == 1) allows = text;
    close(fd);
  }
  struct sysinfo machine {};
  if (allows == '1' || sysinfo(&machine) != 0) return ~std::uint64_t{0};
  return (std::uint64_t{machine.totalram} + machine.totalswap) * machine.mem_unit;
}

[[maybe_unused]] const bool library_was_told_ = [] {
  base::own_malloc = [](std::size_t bytes) {
    const outside here;
    return std::malloc(bytes);
  };
  return true;
}();

}  // namespace

/// Where they are objects of their own.
void find_code() noexcept {
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        const char* const slash = std::strrchr(object->dlpi_name, '/');
        const std::string_view name = slash != nullptr ? slash + 1 : object->dlpi_name;
        auto& p = *static_cast<place_here*>(found);
        const bool is_library = name.find(".so") != name.npos;
        code* const c = !is_library                                                         ? &p.program
                        : name.starts_with("libc.so")                                       ? &p.c_library
                        : name.starts_with("libstdc++.so") || name.starts_with("libc++.so") ? &p.cpp_library
                        : name.starts_with("ld")                                            ? &p.loader
                                                                                            : nullptr;
        if (c == nullptr) return 0;
        for (unsigned i = 0; i < object->dlpi_phnum; ++i)
          if (const auto& part = object->dlpi_phdr[i]; part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0)
            *c = {object->dlpi_addr + part.p_vaddr, part.p_memsz};
        return 0;
      },
      &here);
}

common* lay_out(std::byte* base, std::uint64_t bytes, std::uint32_t room, bool records) noexcept {
  auto* const all = new (base) common;
  all->part_room = room;
  const std::uint64_t mains_at = up(sizeof(common), alignof(part));
  const std::uint64_t parts_at = mains_at + mains_count * sizeof(part);
  const std::uint64_t table_at = up(parts_at + all->part_room * sizeof(part), span_bytes);
  GODWIT_CHECK(bytes > 2 * table_at, "the heap's window has room for more than its own tables");
  // Entries are zero until they are used, and so is the file.
  const std::uint64_t count = (bytes - table_at - (records ? sizeof(allocations) : 0)) /
                                  (span_bytes + sizeof(span) + (records ? allocations::bytes_for_span : 0)) -
                              1;
  all->table = reinterpret_cast<span*>(base + table_at);
  all->spans =
      reinterpret_cast<std::byte*>(up(reinterpret_cast<std::uintptr_t>(all->table + count), span_bytes));
  all->count = count;
  all->largest = std::min(count << span_bits, largest_block());
  all->mains = reinterpret_cast<part*>(base + mains_at);
  all->parts = reinterpret_cast<part*>(base + parts_at);
  if (records) all->recorded = reinterpret_cast<allocations*>(all->spans + (count << span_bits));
  return all;
}

void begin(std::byte* base, std::uint64_t bytes, std::uint32_t workers, std::uint32_t room,
           bool records) noexcept {
  lay_out(base, bytes, std::max(workers, room), records);
  adopt(base);
  GODWIT_CHECK(add_workers(workers), "every worker has a part");
}

bool add_workers(std::uint32_t workers) noexcept {
  common& all = *here.all;
  if (workers > all.part_room) return false;
  for (; all.part_count < workers; ++all.part_count) begin_part(*new (all.parts + all.part_count) part);
  return true;
}

place place_of(common* all) noexcept {
  return {reinterpret_cast<std::uintptr_t>(all->spans), all->count << span_bits, all};
}

void use(const place& p) noexcept {
  __atomic_store_n(&here.bytes, 0, __ATOMIC_RELEASE);
  here.all = p.all;
  here.begin = p.begin;
  __atomic_store_n(&here.bytes, p.bytes, __ATOMIC_RELEASE);
}

void adopt(std::byte* base) noexcept {
  watch_waits();
  find_code();
  use(place_of(reinterpret_cast<common*>(base)));
}

void end() noexcept {
  static_cast<void>(leave());
  use({});
}

namespace {
/// Which functions everybody calls are ours.
struct ours {
  bool malloc, operator_new;
};
ours ask() noexcept {
  part without_room;
  begin_part(without_room);
  const place_here before = std::exchange(here, {});
  part* const had = std::exchange(mine, &without_room);
  const std::new_handler handler = std::set_new_handler(nullptr);  // the program is not short of memory
  void* volatile at = std::malloc(1);
  void* volatile object = ::operator new(1, std::nothrow);  // which a preloaded allocator may bring along
  std::set_new_handler(handler);
  mine = had;
  here = before;
  std::free(at);
  ::operator delete(object);
  return {at == nullptr, object == nullptr};
}
}  // namespace

bool is_ours() noexcept {
  const ours found = ask();
  return found.malloc && found.operator_new;
}

std::string other_malloc() {
  const ours found = ask();
  if (found.malloc && found.operator_new) return {};
  if (__sanitizer_get_allocated_size != nullptr) return "a sanitizer's";
  Dl_info where{};
  link_map* object = nullptr;
  void* const f = dlsym(RTLD_DEFAULT, found.malloc ? "_Znwm" : "malloc");
  if (f == nullptr || dladdr1(f, &where, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 ||
      object == nullptr || *object->l_name == '\0')
    return "its own (linked with it, or that of -static)";
  const std::string_view path = object->l_name;
  return "that of " + std::string(path.substr(path.rfind('/') + 1));
}

bool is_shared() noexcept { return here.all != nullptr; }
bool holds(const void* at) noexcept { return here.holds(at); }

stack::range in_use() noexcept {
  if (!is_shared()) return {};
  const std::uint64_t fresh = __atomic_load_n(&here.all->fresh, __ATOMIC_RELAXED);
  return {here.begin, fresh != 0 ? here.begin + (fresh << span_bits) + 1 : here.begin};
}

bool is_free(std::uintptr_t word) noexcept {
  const void* const at = reinterpret_cast<const void*>(word);
  const part* const own = own_part();
  return here.holds(at) && own != nullptr && is_free(*own, at);
}

namespace {
/// Counts of shared_ptr and the like are atomic from now on: others see them.
void count_atomically() noexcept {
  if (&__libc_single_threaded != nullptr) __libc_single_threaded = 0;
}

std::atomic<std::uint32_t> mains_taken_{0};  // bit i: main's part i
static_assert(mains_count < 32);
}  // namespace

void enter(std::uint32_t number, stack_end* end) noexcept {
  GODWIT_CHECK(here.all != nullptr && number < here.all->part_count, "every worker has a part");
  if (here.all->recorded != nullptr) begin_recording(end);
  go_on(here.all->parts + number);
  count_atomically();
}

part* enter_main() noexcept {
  std::uint32_t taken = mains_taken_.load(std::memory_order_relaxed), i = 0;
  do {
    i = static_cast<std::uint32_t>(std::countr_one(taken));
    if (i >= mains_count) return nullptr;
  } while (!mains_taken_.compare_exchange_weak(taken, taken | 1u << i, std::memory_order_acquire,
                                               std::memory_order_relaxed));
  part& p = here.all->mains[i];
  if (!has_begun(p)) {
    begin_part(p);
    p.of_main = true;
  }
  count_atomically();
  return mine = &p;
}

void leave_main(part* p) noexcept {
  mine = nullptr;
  mains_taken_.fetch_and(~(1u << (p - here.all->mains)), std::memory_order_release);
}
part* leave() noexcept {
  part* const had = own_part();
  mine = recorded = nullptr;
  return had;
}
void go_on(part* with) noexcept { (here.all->recorded != nullptr ? recorded : mine) = with; }
void tidy() noexcept {
  if (part* const own = own_part(); own != nullptr) tidy(*own);
}
void forget() noexcept { here.forgotten = true; }

void put_into_core_file() noexcept {
  if (!is_shared()) return;
  const common& all = *here.all;
  const std::uint64_t fresh = __atomic_load_n(&all.fresh, __ATOMIC_RELAXED);
  const auto put = transport::shm::window::put_into_core_file;
  put(&all, all.table + fresh);
  if (all.recorded != nullptr) put(all.recorded, all.recorded + 1);
  // Free runs have no pages, and the system would make some. Neighbours together: each range is a mapping.
  const auto behind = [&](std::uint64_t i) { return std::min(fresh, i + std::max(all.table[i].spans, 1u)); };
  for (std::uint64_t i = 0; i < fresh;) {
    const std::byte* const from = bytes_of(all.table + i);
    while (i < fresh && all.table[i].kind != run_kind::free) i = behind(i);
    const std::byte* const to = bytes_of(all.table + i);
    if (from != to) put(from, to);
    if (from != to && all.recorded != nullptr) put(&all.recorded->of(from), &all.recorded->of(to));
    while (i < fresh && all.table[i].kind == run_kind::free) i = behind(i);
  }
}

std::string why_refused() {
  if (!is_shared()) return {};
  const common& all = *here.all;
  const std::uint64_t bytes = all.refused.load(std::memory_order_relaxed);
  if (bytes == 0) return {};
  const std::string asked = "a thread asked for " + std::to_string(bytes) + " bytes, ";
  const auto mib = [](std::uint64_t b) { return std::to_string(b >> 20) + " MiB"; };
  if (bytes > all.largest && bytes <= all.count << span_bits)
    return asked + "and the machine has " + mib(all.largest) + " of memory: ask for less";
  return asked + "and the heap of this run has addresses for " + mib(all.count << span_bits) + ", of which " +
         mib(all.fresh << span_bits) +
         " have been in use: raise the limit on address space (ulimit -v) if there is one, or ask for less";
}

std::uint64_t live_bytes() noexcept {
  const common& all = *here.all;
  std::uint64_t bytes = 0;
  each_part([&](const part& p) { bytes += heap::live_bytes(p); });
  for (std::uint64_t i = 0; i < all.fresh; i += all.table[i].spans)
    if (all.table[i].kind == run_kind::large) bytes += std::uint64_t{all.table[i].spans} << span_bits;
  return bytes;
}

std::uint64_t c_library_bytes() noexcept {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 all = mallinfo2();
  return all.uordblks + all.hblkhd;
#else
  return 0;
#endif
}

void check_invariants() noexcept {
  pool::check_invariants();
  each_part([](const part& p) { heap::check_invariants(p); });
}

}  // namespace godwit::heap
