// See lazy_spawns.hpp.
#include "sched/lazy_spawns.hpp"

#include <godwit/detail/lazy_spawn.hpp>

#include <algorithm>
#include <iterator>

#include "base/check.hpp"
#include "base/code_place.hpp"
#include "base/valgrind.hpp"
#include "sched/worker.hpp"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#include <cxxabi.h>
#include <unwind.h>

extern "C" {
[[gnu::weak]] extern const char godwit_lazy_looks;
}

namespace godwit::sched {

namespace {

using context::frame_registers;
using context::frame_rule;
using detail::lazy_left;
using detail::ref;

constexpr std::uint8_t is_inside = 64;
constexpr std::uint8_t first_kind = 1;  // lazy_left<traits> is first_kind + traits

/// f(constant) for the traits that a spawn can have.
template <class F, unsigned... Bits>
void each_traits(F&& f, std::integer_sequence<unsigned, Bits...>) {
  (f(std::integral_constant<unsigned, Bits>{}), ...);
}
template <class F>
void each_traits(F&& f) {
  each_traits(f, std::make_integer_sequence<unsigned, detail::lazy_traits_end>{});
}

std::uint8_t kind_of(const std::type_info& type) noexcept {
  std::uint8_t kind = type == typeid(detail::lazy_inside) ? is_inside : 0;
  each_traits([&](auto traits) {
    if (kind == 0 && type == typeid(lazy_left<traits>)) kind = static_cast<std::uint8_t>(first_kind + traits);
  });
  return kind;
}

// One set for the process: code lies at one place. Used where the expose signal keeps its hands off only.
context::frame_rules rules_;

}  // namespace

bool lazy_refers_to(const spawn_slot& parent, std::uintptr_t low, std::uintptr_t top,
                    std::uintptr_t end) noexcept {
  const unsigned traits = lazy_traits_of(parent);
  if ((traits & detail::lazy_bare) != 0) return false;
  if ((traits & detail::lazy_hides) != 0) return true;
  const auto& kept = lazy_site_of(parent)->kept;
  for (std::uintptr_t at = low; at < top; at += sizeof at) {
    const std::uintptr_t word = *reinterpret_cast<const std::uintptr_t*>(at);
    if (word < top || word >= end) continue;
    if (std::ranges::find(kept, (top - at) / sizeof at) == std::end(kept)) return true;
  }
  return false;
}

void lazy_spawns::init(spawn_slot* slots, std::uint64_t bytes) noexcept {
  slots_ = slots;
  half_ = bytes / sizeof(spawn_slot) / 2;
  rules_.learn(kind_of);
}

void lazy_spawns::put_below(std::byte* to, const spawn_slot& slot, const lazy_site& site,
                            ref status) noexcept {
#if defined(__x86_64__)
  if constexpr (context::lazy_spawns_exist) {
    const std::uintptr_t words[] = {site.r15,
                                    site.r14,
                                    site.r13,
                                    site.r12,
                                    slot.extra,
                                    slot.fp,
                                    reinterpret_cast<std::uintptr_t>(&godwit_lazy_enter),
                                    status,
                                    site.return_address};
    static_assert(sizeof words == bytes_below);
    std::memcpy(to, words, sizeof words);
    return;
  }
#endif
  static_cast<void>(to), static_cast<void>(slot), static_cast<void>(site), static_cast<void>(status);
}

bool looks_at_lazy_spawns() noexcept { return &godwit_lazy_looks != nullptr; }

#if defined(__x86_64__)

namespace {

bool is_spawn(std::uint8_t kind) noexcept { return kind != 0 && kind != is_inside; }
unsigned traits_of(std::uint8_t kind) noexcept { return kind - first_kind; }

// How its result comes goes along with a child: its return address says so.
std::uintptr_t stub_of(unsigned traits) noexcept {
  return reinterpret_cast<std::uintptr_t>(
      (traits & detail::lazy_by_address) != 0 ? &godwit_lazy_stub_by_address : &godwit_lazy_stub);
}
bool is_stub(std::uintptr_t pc) noexcept {
  return pc == stub_of(0) || pc == stub_of(detail::lazy_by_address);
}

bool shadow_stack_is_on() noexcept {
  constexpr long shadow_stack_status = 0x5005;  // ARCH_SHSTK_STATUS
  unsigned long on = 0;
  return syscall(SYS_arch_prctl, shadow_stack_status, &on) == 0 && (on & 1) != 0;
}
bool has_tables(std::uintptr_t pc) noexcept {
  static context::frame_rules own;
  own.learn(nullptr);
  return own.of_instruction(pc).is != frame_rule::known::no;
}

}  // namespace

const char* no_lazy_spawns() noexcept {
  if (!context::lazy_spawns_exist || &godwit_ctx_portable != nullptr)
    return "there is a context switch for it on x86-64 only, in assembly";
  if (context::sanitized()) return "a sanitizer or valgrind follows the stacks, and would not see it move";
  if (shadow_stack_is_on()) return "this process has a shadow stack, which return addresses must not leave";
  if (!has_tables(reinterpret_cast<std::uintptr_t>(&no_lazy_spawns)))
    return "this library has been built without unwind tables (-fno-asynchronous-unwind-tables)";
  return context::frame_rules::refusal();
}

void lazy_spawns::note_kept(lazy_site& of, std::uintptr_t sp, const kept_places& places) noexcept {
  for (std::size_t i = 0; i < places.size(); ++i)
    of.kept[i] = places[i] != 0 ? static_cast<std::uint32_t>((sp - places[i]) / sizeof(std::uintptr_t)) : 0;
}

/// visit(registers of a spawn, its kind, where its child keeps them, may its parent leave?), the newest
/// first, from @p from to the newest slot, which is visited last, with kind 0. False: it did not arrive
/// there.
template <class Visit>
bool lazy_spawns::walk(frame_registers g, Visit&& visit) noexcept {
  const spawn_slot* const newest = detail::hot().bottom - 1;
  const auto own_code = reinterpret_cast<std::uintptr_t>(godwit_lazy_begin);
  const auto own_bytes = reinterpret_cast<std::uintptr_t>(godwit_lazy_end) - own_code;
  bool inside = false;
  kept_places kept{};
  std::uintptr_t low = g.rsp;
  const frame_rule* rule = &rules_.of_instruction(g.rip);
  for (;;) {
    lost_at_ = g.rip;
    if (g.rip - own_code < own_bytes) return false;  // LZ2
    if (rule->is == frame_rule::known::last) {
      constexpr std::uintptr_t most_above = 128;  // where a thread begins
      return newest == slots_ && newest->sp - g.rsp <= most_above;
    }
    if (!context::frame_rules::step(g, *rule, low, newest->sp)) return false;
    low = g.rsp;
    for (std::size_t i = 0; i < kept.size(); ++i)
      if (rule->saved[i] != frame_rule::not_saved)
        kept[i] = g.rsp + static_cast<std::uintptr_t>(std::int64_t{rule->saved[i]});
    if (is_stub(g.rip)) {
      if (g.rsp != newest->sp) return false;
      visit(g, 0, kept, true);
      return true;
    }
    rule = &rules_.of_return(g.rip);
    const std::uint8_t kind = rule->catches;
    if (is_spawn(kind)) {
      visit(g, kind, kept, (traits_of(kind) & detail::lazy_owns) == 0 || inside);
      kept = {};
    }
    inside = kind == is_inside;
  }
}

bool lazy_spawns::push(const frame_registers& from) noexcept {
  if (from.rsp < here_.region_low || from.rsp >= here_.region_high) return false;
  // Code that puts a context back: what lies at its stack pointer are registers, no return addresses.
  const auto switches = reinterpret_cast<std::uintptr_t>(&godwit_ctx_resume_fork);
  if (from.rip - switches < reinterpret_cast<std::uintptr_t>(&godwit_ctx_thread_end) - switches) return false;
  // The oldest ones, up to the first whose parent may not leave.
  std::uint64_t all = 0, count = 0;
  const bool arrived = walk(from, [&](const auto&, std::uint8_t kind, const auto&, bool may_leave) {
    if (kind == 0) return;
    ++all;
    count = may_leave ? count + 1 : 0;  // LZ4
  });
  if (!arrived) return false;
  spawn_slot* const bottom = detail::hot().bottom;
  if (static_cast<std::uint64_t>(bottom - slots_) + all >= half_) return false;
  std::uint64_t i = all;
  walk(from, [&](const frame_registers& g, std::uint8_t kind, const kept_places& kept, bool) {
    if (kind == 0) {
      if (bottom - 1 != slots_) note_kept(*lazy_site_of(bottom[-1]), g.rsp, kept);
      return;
    }
    if (--i >= count) return;
    spawn_slot& s = bottom[i];
    lazy_site* const site = reinterpret_cast<lazy_site*>(&s + half_);
    s.sp = g.rsp;
    s.fp = g.rbp;
    s.extra = g.rbx;
    s.closure[0] = traits_of(kind);
    s.closure[1] = reinterpret_cast<std::uintptr_t>(site);
    *site = {g.r12, g.r13, g.r14, g.r15, g.rip, {}};
    note_kept(*site, g.rsp, kept);
    reinterpret_cast<std::uintptr_t*>(g.rsp)[-1] = stub_of(traits_of(kind));
  });
  std::atomic_signal_fence(std::memory_order_seq_cst);
  detail::hot().bottom = bottom + count;  // LZ1
  return true;
}

void lazy_spawns::push_here() noexcept {
  frame_registers g;
  asm volatile(
      "movq %%rbx, 0(%0)\n\t"
      "movq %%rbp, 8(%0)\n\t"
      "movq %%r12, 16(%0)\n\t"
      "movq %%r13, 24(%0)\n\t"
      "movq %%r14, 32(%0)\n\t"
      "movq %%r15, 40(%0)\n\t"
      "movq %%rsp, 48(%0)\n\t"
      "leaq 0(%%rip), %%rax\n\t"
      "movq %%rax, 56(%0)"
      :
      : "r"(&g)
      : "rax", "memory");
  if (push(g)) return;
  rules_.learn(kind_of);  // code that has been loaded since
  if (!push(g))
    base::fatal(
        "worker %u: policy lazy: a thread has to wait, and the frames of its stack cannot be followed past "
        "%s: build that with -fasynchronous-unwind-tables, or use policy greedy",
        transport::index(here_.me), base::code_place(lost_at_).c_str());
}

#else

const char* no_lazy_spawns() noexcept { return "it exists on x86-64 only"; }
bool lazy_spawns::push(const frame_registers&) noexcept { return false; }
void lazy_spawns::push_here() noexcept {}

#endif

}  // namespace godwit::sched

namespace godwit::detail {

void lazy_never() { base::fatal("code that is never executed was executed: a bug in godwit's policy lazy"); }

}  // namespace godwit::detail

#if defined(__x86_64__)

// What the assembly calls (src/context/lazy_x86_64.S). From the first instruction on, the signal finds the
// stub's code below, and keeps its hands off.
extern "C" {

godwit::sched::lazy_way godwit_lazy_returned(std::uintptr_t value, std::uintptr_t give) noexcept {
  return godwit::sched::this_worker().lazy_child_returned(value, give);
}
godwit::sched::lazy_way godwit_lazy_caught(void* exception) noexcept {
  __cxxabiv1::__cxa_begin_catch(exception);
  const godwit::detail::ref error = godwit::detail::capture_exception();
  __cxxabiv1::__cxa_end_catch();
  return godwit::sched::this_worker().lazy_child_failed(error);
}

/// As if the spawn at the caller's return address had called it.
[[noreturn, gnu::noinline]] void godwit_lazy_throw(std::uintptr_t status) {
  using namespace godwit;
  // LZ3: the spawn looks as if it were calling, and must not be found until it has caught this.
  GODWIT_ASSERT(detail::hot().in_runtime != 0, "the expose signal keeps its hands off meanwhile");
  const auto at = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  const std::uint8_t kind = sched::rules_.of_return(at).catches;
  sched::each_traits([&](auto traits) {
    if (kind == sched::first_kind + traits) throw detail::lazy_left<traits>{status};
  });
  detail::lazy_never();
}

_Unwind_Reason_Code godwit_lazy_personality(int, _Unwind_Action what, _Unwind_Exception_Class,
                                            _Unwind_Exception* e, _Unwind_Context* c) {
  extern const char handler[] asm("godwit_lazy_threw") __attribute__((visibility("hidden")));
  if ((what & _UA_SEARCH_PHASE) != 0) return _URC_HANDLER_FOUND;
  if ((what & _UA_HANDLER_FRAME) == 0) return _URC_CONTINUE_UNWIND;
  constexpr int rax = 0;
  _Unwind_SetGR(c, rax, reinterpret_cast<std::uintptr_t>(e));
  _Unwind_SetIP(c, reinterpret_cast<std::uintptr_t>(handler));
  return _URC_INSTALL_CONTEXT;
}
}

#endif
