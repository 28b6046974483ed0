// The register that leads to the hot words: see include/godwit/detail/hot.hpp and context.hpp.

#include <cerrno>
#include <cstring>
#if defined(__x86_64__)
#include <asm/prctl.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "base/check.hpp"
#include "context/context.hpp"

namespace {

using godwit::detail::hot_words;

godwit::detail::spawn_slot stray_slots_[2];

/// Outside a run, for all OS threads: poll is set, so that a stray spawn reports itself instead of crashing.
constinit hot_words stray_ = {
    .self = &stray_, .bottom = stray_slots_, .split = stray_slots_, .in_runtime = 1, .poll = {1}};

}  // namespace

// Known to switch_*.S.
static_assert(offsetof(hot_words, self) == 0 && offsetof(hot_words, bottom) == 8 &&
              offsetof(hot_words, free_stacks) == 24);

#if defined(__x86_64__)

extern "C" {
extern const char godwit_hot_anchor = 0;
}

namespace godwit::context {

namespace {
constexpr unsigned long hwcap2_fsgsbase = 2;  // the system lets programs write the bases themselves
const bool writes_bases_ = (getauxval(AT_HWCAP2) & hwcap2_fsgsbase) != 0;
}  // namespace

void use_hot_words(hot_words* words) noexcept {
  if (words == nullptr)
    words = &stray_;
  else
    words->self = words;
  if (writes_bases_)
    asm volatile("wrgsbase %0" : : "r"(words) : "memory");
  else if (syscall(SYS_arch_prctl, ARCH_SET_GS, words) != 0)
    base::fatal(
        "cannot set the base of segment gs (arch_prctl): %s: a sandbox forbids it? godwit keeps its workers' "
        "state there",
        std::strerror(errno));
}

std::uintptr_t thread_pointer() noexcept {
  std::uintptr_t value;
  // it points to itself (ELF thread-local storage, x86-64 variant II)
  asm volatile("movq %%fs:0, %0" : "=r"(value));
  return value;
}
// Between the two thread pointers lies no use of anything thread-local: compiled code may keep such
// addresses.
[[gnu::noinline]] void set_thread_pointer(std::uintptr_t value) noexcept {
  if (writes_bases_)
    asm volatile("wrfsbase %0" : : "r"(value) : "memory");
  else
    asm volatile("syscall"
                 :
                 : "a"(static_cast<long>(SYS_arch_prctl)), "D"(static_cast<long>(ARCH_SET_FS)), "S"(value)
                 : "rcx", "r11", "memory");
}
}  // namespace godwit::context

#else

extern "C" {
[[gnu::tls_model("initial-exec")]] constinit thread_local hot_words* godwit_hot_ = &stray_;
[[gnu::noinline]] hot_words* godwit_hot_words() noexcept { return godwit_hot_; }
}

namespace godwit::context {
void use_hot_words(hot_words* words) noexcept {
  if (words == nullptr)
    words = &stray_;
  else
    words->self = words;
  godwit_hot_ = words;
}
std::uintptr_t thread_pointer() noexcept { return 0; }
void set_thread_pointer(std::uintptr_t) noexcept {
  base::fatal("threads with a thread pointer of their own: on x86-64 only");
}
}  // namespace godwit::context

#endif

namespace {
/// Before main, and before constructors that may start threads: these inherit the register on x86-64.
[[gnu::constructor(101)]] void begin_outside() { godwit::context::use_hot_words(nullptr); }
}  // namespace
