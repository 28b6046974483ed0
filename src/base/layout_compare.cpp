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

std::string who(const rank_layout& r) {
  return "rank " + std::to_string(r.rank) + " (host " + std::string(r.host, strnlen(r.host, sizeof r.host)) +
         ")";
}

bool is_program(const layout::module& m) noexcept { return m.name[0] == '\0'; }

std::string shown_limit(std::uint64_t bytes) {
  return bytes == static_cast<std::uint64_t>(RLIM_INFINITY) ? "unlimited" : std::to_string(bytes / 1024);
}

using compared = std::array<std::uint64_t, 7>;
constexpr std::size_t stack_word = 6;

bool have_equal_layouts(const compared& a, const compared& b) noexcept {
  return std::equal(a.begin(), a.begin() + stack_word, b.begin());
}

/// The first of @p some whose randomisation is @p state.
const rank_layout* first_with(layout::state state, std::span<const rank_layout> some) noexcept {
  for (const rank_layout& r : some)
    if (r.is.randomisation == state) return &r;
  return nullptr;
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

std::array<std::uint64_t, 7> words_to_compare(const layout& l) noexcept {
  return {l.format, l.program, l.modules, l.tls, l.heap_start, l.page_bytes, l.main_stack};
}

std::array<bool, 5> reasons_to_name(const layout& mine, const compared& zero) noexcept {
  const compared words = words_to_compare(mine);
  const auto is = [&](layout::state s) { return mine.randomisation == s; };
  return {!have_equal_layouts(words, zero), words[stack_word] != zero[stack_word],
          is(layout::state::as_asked), is(layout::state::refused), is(layout::state::not_needed)};
}

std::string compare_layouts(std::span<const rank_layout> some) {
  const compared of_zero = words_to_compare(some[0].is);
  const auto differs = std::find_if(some.begin(), some.end(), [&](const rank_layout& r) {
    return !have_equal_layouts(words_to_compare(r.is), of_zero);
  });
  if (differs == some.end()) return {};
  const layout &zero = some[0].is, &one = differs->is;
  const std::string one_name = who(*differs), zero_name = who(some[0]);

  if (one.format != zero.format || one.program != zero.program) {
    const auto id = [](const layout& l) { return l.build_id[0] != '\0' ? std::string(l.build_id) : "none"; };
    return one_name + " runs another binary than " + zero_name + ": build-id " + id(one) + ", not " +
           id(zero) + "; start the same file on all hosts";
  }
  if (one.page_bytes != zero.page_bytes)
    return one_name + " has pages of " + std::to_string(one.page_bytes) + " bytes, " + zero_name + " of " +
           std::to_string(zero.page_bytes) + "; use hosts that agree";
  // Before any address: it explains them all.
  if (const rank_layout* r = first_with(layout::state::as_asked, some); r != nullptr)
    return who(*r) + " has its own random addresses because GODWIT_RANDOMIZE is set; unset it";
  if (const rank_layout* r = first_with(layout::state::refused, some); r != nullptr)
    return "address randomisation could not be switched off in " + who(*r) + ": " + r->is.detail +
           (std::strncmp(r->is.detail, "personality", 11) == 0
                ? "\nin a container allow it (docker run --security-opt seccomp=unconfined), or switch it "
                  "off on "
                  "the host: sysctl kernel.randomize_va_space=0"
                : "\nranks must be able to execute their own program anew");
  if (const rank_layout* r = first_with(layout::state::not_needed, some); r != nullptr)
    return who(*r) +
           " has its own random addresses: no launcher was recognised, or godwit was loaded by dlopen; start "
           "it "
           "by mpirun or srun, with godwit linked to the program";
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

std::string compare_main_stacks(std::span<const rank_layout> some) {
  for (const rank_layout& r : some)
    if (r.is.main_stack != some[0].is.main_stack)
      return "main's locals lie elsewhere in " + who(r) + " than in " + who(some[0]) +
             ": threads must not use references to them; or start all ranks with arguments and environments "
             "of about equal length";
  return {};
}

}  // namespace godwit::base
