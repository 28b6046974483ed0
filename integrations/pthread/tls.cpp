// See tls.hpp.
#include "tls.hpp"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>
#include <locale.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "report.hpp"

namespace godwit::pthread::tls {

namespace {

// The begin of a block's description; laid down by the x86-64 ABI of glibc (compiled code uses several of
// these).
struct header {
  void* self;
  void* vector;  ///< where the modules' variables lie (dtv)
  void* self_too;
  int multiple_threads;
  int unused;
  std::uintptr_t sysinfo;
  std::uintptr_t stack_guard;
  std::uintptr_t pointer_guard;
};
static_assert(offsetof(header, stack_guard) == 0x28 && offsetof(header, pointer_guard) == 0x30);

// One entry of the vector. [-1] counts the entries, [0] is the generation.
struct vector_entry {
  std::size_t value;
  void* to_free;
};

using allocate_fn = void*(void*);
using initialise_fn = void*(void*, bool);
allocate_fn* allocate_ = nullptr;
initialise_fn* initialise_ = nullptr;
void (*begin_ctype_)() = nullptr;
void (*destructors_)() = nullptr;
std::size_t description_bytes_ = 0, tid_at_ = 0, list_at_ = 0;
std::size_t cancel_at_ = 0;  // of the bits about cancellation; 0: not known
// of the pointer to the thread's resolver state, from the thread pointer; 0: none
std::ptrdiff_t resolver_at_ = 0;
std::ptrdiff_t rseq_at_ = 0;
unsigned rseq_bytes_ = 0;
// The C library's own variables, from the thread pointer.
std::ptrdiff_t own_at_ = 0;
std::size_t own_bytes_ = 0;
void* own_copy(const char* block) noexcept { return const_cast<char*>(block) + own_at_; }

char* here() noexcept {
  char* p;
  asm volatile("movq %%fs:0, %0" : "=r"(p));
  return p;
}

void* need(const char* name) noexcept {
  void* p = dlsym(RTLD_DEFAULT, name);
  if (p == nullptr)
    fail(
        "the C library has no %s: this needs glibc 2.34 or later, as a shared library; run the program "
        "without godwit-pthread",
        name);
  return p;
}

/// The tables for debuggers: {bits, elements, offset}.
std::size_t field(const void* table) noexcept { return static_cast<const std::uint32_t*>(table)[2]; }

int find_own(dl_phdr_info* info, std::size_t, void*) {
  const char* name = std::strrchr(info->dlpi_name, '/');
  if (name == nullptr || std::strncmp(name, "/libc.so", 8) != 0) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_TLS && info->dlpi_tls_data != nullptr) {
      own_at_ = static_cast<char*>(info->dlpi_tls_data) - here();
      own_bytes_ = info->dlpi_phdr[i].p_memsz;
    }
  return 1;
}

void describe(char* block) noexcept {
  auto& h = *reinterpret_cast<header*>(block);
  const auto& mine = *reinterpret_cast<const header*>(here());
  h.self = h.self_too = block;
  h.multiple_threads = 1;
  h.sysinfo = mine.sysinfo;
  h.stack_guard = mine.stack_guard;
  h.pointer_guard = mine.pointer_guard;
  auto** list = reinterpret_cast<void**>(block + list_at_);  // of one: fork takes the caller out of its list
  list[0] = list[1] = list;
  forget_kernel(block);
}

}  // namespace

void prepare() noexcept {
  allocate_ = reinterpret_cast<allocate_fn*>(need("_dl_allocate_tls"));
  initialise_ = reinterpret_cast<initialise_fn*>(need("_dl_allocate_tls_init"));
  begin_ctype_ = reinterpret_cast<void (*)()>(need("__ctype_init"));
  destructors_ = reinterpret_cast<void (*)()>(need("__call_tls_dtors"));
  description_bytes_ = *static_cast<const std::uint32_t*>(need("_thread_db_sizeof_pthread"));
  tid_at_ = field(need("_thread_db_pthread_tid"));
  list_at_ = field(need("_thread_db_pthread_list"));
  if (const void* bits = dlsym(RTLD_DEFAULT, "_thread_db_pthread_cancelhandling"); bits != nullptr)
    cancel_at_ = field(bits);
  if (const auto* at = static_cast<const std::ptrdiff_t*>(dlsym(RTLD_DEFAULT, "__rseq_offset"));
      at != nullptr) {
    rseq_at_ = *at;
    rseq_bytes_ = *static_cast<const unsigned*>(need("__rseq_size"));
  }
  if (void* resolver = dlsym(RTLD_DEFAULT, "__resp"); resolver != nullptr)
    resolver_at_ = static_cast<char*>(resolver) - here();
  dl_iterate_phdr(find_own, nullptr);
  if (own_bytes_ == 0)
    fail("the C library's thread-local variables cannot be found: run the program without godwit-pthread");
  if (tid_of(here()) != getpid() || list_at_ >= description_bytes_)
    fail(
        "this C library keeps a thread's number elsewhere than it says: run the program without "
        "godwit-pthread");
}

char* make() noexcept {
  auto* block = static_cast<char*>(allocate_(nullptr));
  if (block != nullptr) describe(block);
  return block;
}

void clean(char* block) noexcept {
  auto* vector = static_cast<vector_entry*>(reinterpret_cast<header*>(block)->vector);
  for (std::size_t i = 1; i <= vector[-1].value; ++i) std::free(vector[i].to_free);
  std::memset(static_cast<void*>(vector), 0, (vector[-1].value + 1) * sizeof(vector_entry));
  char kept[4096];
  const bool keep = own_bytes_ <= sizeof kept;
  if (keep) std::memcpy(kept, own_copy(block), own_bytes_);
  initialise_(block, true);
  if (keep) std::memcpy(own_copy(block), kept, own_bytes_);
  std::memset(block + list_at_, 0, description_bytes_ - list_at_);
  describe(block);
}

void set_tid(char* block, int tid) noexcept { std::memcpy(block + tid_at_, &tid, sizeof tid); }
int tid_of(const char* block) noexcept {
  int tid;
  std::memcpy(&tid, block + tid_at_, sizeof tid);
  return tid;
}

cancel_bits cancel_bits_of(const char* block) noexcept {
  constexpr unsigned asked = 8, ends = 16;  // as the C library has had them since there are threads
  if (cancel_at_ == 0) return {false, true};
  const unsigned bits =
      __atomic_load_n(reinterpret_cast<const unsigned*>(block + cancel_at_), __ATOMIC_SEQ_CST);
  return {(bits & asked) != 0, (bits & ends) != 0};
}

void begin_thread(void* resolver_state) noexcept {
  uselocale(LC_GLOBAL_LOCALE);
  begin_ctype_();
  if (resolver_at_ != 0) *reinterpret_cast<void**>(here() + resolver_at_) = resolver_state;
}

void run_destructors() noexcept { destructors_(); }

void forget_kernel(char* block) noexcept {
  // Restartable sequences: the kernel writes the CPU's number there, and only for one OS thread. "Not
  // registered" makes sched_getcpu ask.
  constexpr int registration_failed = -2;
  if (rseq_at_ != 0) std::memcpy(block + rseq_at_ + 4, &registration_failed, sizeof registration_failed);
}

void unregister_from_kernel() noexcept {
  constexpr unsigned signature = 0x53053053, unregister = 1;
  if (rseq_at_ != 0 && rseq_bytes_ != 0)
    static_cast<void>(syscall(SYS_rseq, here() + rseq_at_, 32, unregister, signature));
  forget_kernel(here());
}

}  // namespace godwit::pthread::tls
