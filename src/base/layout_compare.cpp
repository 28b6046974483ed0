// Whether ranks have the same addresses, and if not, what to do about it. See fixed_layout.hpp. Test:
// tests/base/launcher_test.cpp.
#include "base/fixed_layout.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/text.hpp"

namespace godwit::base {
namespace {

std::string who(int rank, const char (*hosts)[64]) {
  return "rank " + std::to_string(rank) + " (host " + std::string(hosts[rank], strnlen(hosts[rank], 64)) +
         ")";
}

bool is_program(const layout::module& m) noexcept { return m.name[0] == '\0'; }

std::string shown_limit(std::uint64_t bytes) {
  return bytes == static_cast<std::uint64_t>(RLIM_INFINITY) ? "unlimited" : std::to_string(bytes / 1024);
}

bool have_equal_layouts(const layout& a, const layout& b) noexcept {
  return a.format == b.format && a.program == b.program && a.modules == b.modules && a.tls == b.tls &&
         a.heap_start == b.heap_start && a.page_bytes == b.page_bytes;
}

std::span<const layout::module> listed(const layout& in) noexcept {
  return {in.module_list, std::min<std::size_t>(in.module_count, layout::most_modules)};
}

const layout::module* find_module(const layout& in, const char* name) noexcept {
  for (const layout::module& m : listed(in))
    if (std::strncmp(m.name, name, sizeof m.name) == 0) return &m;
  return nullptr;
}

/// A library that one has and the other lacks, or has in another version: then addresses cannot agree.
std::string other_files(const layout& a, const layout& b, const std::string& a_name,
                        const std::string& b_name) {
  for (const layout::module& m : listed(a)) {
    if (is_program(m)) continue;
    const layout::module* other = find_module(b, m.name);
    if (other == nullptr) return a_name + " has loaded " + m.name + ", " + b_name + " has not";
    if (other->build != m.build) return a_name + " has another build of " + m.name + " than " + b_name;
  }
  for (const layout::module& m : listed(b))
    if (find_module(a, m.name) == nullptr)
      return b_name + " has loaded " + m.name + ", " + a_name + " has not";
  return {};
}

/// What lies elsewhere.
std::string other_address(const layout& a, const layout& b, const std::string& a_name,
                          const std::string& b_name) {
  const auto at = [&](const std::string& what, std::uint64_t in_a, std::uint64_t in_b) {
    return a_name + " has " + what + " at " + hexadecimal(in_a) + ", " + b_name + " at " + hexadecimal(in_b);
  };
  for (const layout::module& m : listed(a))
    if (const layout::module* other = find_module(b, m.name); other != nullptr && other->base != m.base)
      return at(is_program(m) ? "the program" : m.name, m.base, other->base);
  if (a.tls != b.tls) return at("thread-local variables", a.tls, b.tls);
  if (a.heap_start != b.heap_start) return at("its heap", a.heap_start, b.heap_start);
  return a_name + " has loaded its libraries in another order than " + b_name;
}

}  // namespace

std::string compare_layouts(const layout* all, int n, const char (*hosts)[64]) {
  const layout& zero = all[0];
  int differs = 0;
  while (++differs < n && have_equal_layouts(all[differs], zero)) {
  }
  if (differs >= n) return {};
  const layout& one = all[differs];
  const std::string one_name = who(differs, hosts), zero_name = who(0, hosts);

  if (one.format != zero.format || one.program != zero.program) {
    const auto id = [](const layout& l) { return l.build_id[0] != '\0' ? std::string(l.build_id) : "none"; };
    return one_name + " runs another binary than " + zero_name + ": build-id " + id(one) + ", not " +
           id(zero) + "; start the same file on all hosts";
  }
  if (one.page_bytes != zero.page_bytes)
    return one_name + " has pages of " + std::to_string(one.page_bytes) + " bytes, " + zero_name + " of " +
           std::to_string(zero.page_bytes) + "; use hosts that agree";
  // Before any address: it explains them all.
  for (int rank = 0; rank < n; ++rank)
    if (all[rank].randomisation == layout::state::as_asked)
      return who(rank, hosts) + " has its own random addresses because GODWIT_RANDOMIZE is set; unset it";
  for (int rank = 0; rank < n; ++rank)
    if (all[rank].randomisation == layout::state::refused)
      return "address randomisation could not be switched off in " + who(rank, hosts) + ": " +
             all[rank].detail +
             (std::strncmp(all[rank].detail, "personality", 11) == 0
                  ? "\nin a container allow it (docker run --security-opt seccomp=unconfined), or switch it "
                    "off on "
                    "the host: sysctl kernel.randomize_va_space=0"
                  : "\nranks must be able to execute their own program anew");
  for (int rank = 0; rank < n; ++rank)
    if (all[rank].randomisation == layout::state::not_needed)
      return who(rank, hosts) +
             " has its own random addresses: no launcher was recognised, or godwit was loaded by dlopen; "
             "start it by mpirun or srun, with godwit linked to the program";
  if (const std::string files = other_files(one, zero, one_name, zero_name); !files.empty())
    return files + "; use the same libraries, LD_LIBRARY_PATH and LD_PRELOAD on all hosts";
  std::string text = other_address(one, zero, one_name, zero_name);
  if (one.stack_limit != zero.stack_limit)
    return text + "\nulimit -s is " + shown_limit(one.stack_limit) + " there and " +
           shown_limit(zero.stack_limit) + " in rank 0; it moves mappings: use the same on all hosts";
  if (std::strncmp(one.kernel, zero.kernel, sizeof one.kernel) != 0)
    return text + "\nthe kernels are " + one.kernel + " and " + zero.kernel + "; use hosts with the same";
  return text + "\nuse the same LD_LIBRARY_PATH, LD_PRELOAD, ulimit -s and kernel on all hosts";
}

std::string compare_main_stacks(const layout* all, int n, const char (*hosts)[64]) {
  for (int i = 1; i < n; ++i)
    if (all[i].main_stack != all[0].main_stack)
      return "main's locals lie elsewhere in " + who(i, hosts) + " than in " + who(0, hosts) +
             ": threads must not use references to them; or start all ranks with arguments and environments "
             "of about equal length";
  return {};
}

}  // namespace godwit::base
