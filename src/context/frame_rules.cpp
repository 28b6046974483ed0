// See frame_rules.hpp.
#include "context/frame_rules.hpp"

#include <cstring>

#if defined(__x86_64__) && defined(__linux__)

#include <link.h>
#include <unwind.h>

#include "context/eh_frame.hpp"

namespace godwit::context {

namespace {

// DWARF's numbers of registers.
enum : unsigned { rbx = 3, rbp = 6, rsp = 7, r12 = 12, r15 = 15, return_address = 16, columns = 17 };
constexpr unsigned saved_columns[frame_rule::saved_registers] = {rbx, rbp, 12, 13, 14, 15};

/// What the frame's program has said up to an instruction.
struct frame_state {
  std::int64_t cfa_offset = 8;
  std::int64_t saved[columns];
  std::uint64_t cfa_register = rsp;
  bool is_last = false;
  frame_state() noexcept {
    for (auto& s : saved) s = frame_rule::not_saved;
  }
};

/// Runs the program of a description, up to an instruction.
class frame_program {
 public:
  frame_program(const frame_description& of, std::uintptr_t until) noexcept
      : of_(of), until_(until), place_(of.begin) {}

  /// False: it says something that is no rule here.
  bool run(frame_state& s) noexcept {
    state_ = &s;
    if (!run(of_.common, of_.common_end.at)) return false;
    initial_ = s;
    return run(of_.own, of_.own_end.at);
  }

 private:
  bool run(table_reader at, const unsigned char* end) noexcept {
    while (at.at < end && place_ <= until_)
      if (const unsigned char op = *at.at++; !(op & 0xC0 ? short_form(op, at) : long_form(op, at)))
        return false;
    return true;
  }
  void save(std::uint64_t column, std::int64_t offset) noexcept {
    if (column < columns) state_->saved[column] = offset;
  }
  void restore(std::uint64_t column) noexcept {
    if (column < columns) state_->saved[column] = initial_.saved[column];
  }
  bool advance(std::uint64_t units) noexcept {
    place_ += units * of_.code_unit;
    return true;
  }
  bool short_form(unsigned char op, table_reader& at) noexcept {
    const unsigned operand = op & 0x3F;
    switch (op & 0xC0) {
      case 0x40:
        return advance(operand);
      case 0x80:
        save(operand, static_cast<std::int64_t>(at.unsigned_number()) * of_.data_unit);
        return true;
      default:
        restore(operand);
        return true;
    }
  }
  // Long: a case for each instruction.
  bool long_form(unsigned char op, table_reader& at) noexcept {
    frame_state& s = *state_;
    switch (op) {
      case 0x00:
        return true;  // nothing
      case 0x01:
        return at.address(of_.address_encoding, place_);
      case 0x02:
        return advance(at.fixed<std::uint8_t>());
      case 0x03:
        return advance(at.fixed<std::uint16_t>());
      case 0x04:
        return advance(at.fixed<std::uint32_t>());
      case 0x05: {  // saved at an offset
        const auto column = at.unsigned_number();
        save(column, static_cast<std::int64_t>(at.unsigned_number()) * of_.data_unit);
        return true;
      }
      case 0x06:
        restore(at.unsigned_number());
        return true;
      case 0x07:  // undefined: of the return address, there is no caller
        if (at.unsigned_number() == return_address) s.is_last = true;
        return true;
      case 0x08:
        save(at.unsigned_number(), frame_rule::not_saved);
        return true;  // it is as it was
      case 0x0A:
        if (depth_ == most_states) return false;
        states_[depth_++] = s;
        return true;
      case 0x0B:
        if (depth_ == 0) return false;
        s = states_[--depth_];
        return true;
      case 0x0C:
        s.cfa_register = at.unsigned_number();
        s.cfa_offset = static_cast<std::int64_t>(at.unsigned_number());
        return true;
      case 0x0D:
        s.cfa_register = at.unsigned_number();
        return true;
      case 0x0E:
        s.cfa_offset = static_cast<std::int64_t>(at.unsigned_number());
        return true;
      case 0x11: {
        const auto column = at.unsigned_number();
        save(column, at.signed_number() * of_.data_unit);
        return true;
      }
      case 0x12:
        s.cfa_register = at.unsigned_number();
        s.cfa_offset = at.signed_number() * of_.data_unit;
        return true;
      case 0x13:
        s.cfa_offset = at.signed_number() * of_.data_unit;
        return true;
      case 0x2E:
        at.unsigned_number();
        return true;  // bytes of arguments on the stack
      default:
        return false;  // an expression, or a register in another one
    }
  }

  static constexpr unsigned most_states = 8;
  const frame_description& of_;
  std::uintptr_t until_, place_;
  frame_state* state_ = nullptr;
  frame_state initial_, states_[most_states];
  unsigned depth_ = 0;
};

/// The type that the innermost handler around the call before @p pc catches first; null: there is none.
const std::type_info* first_handler(const frame_description& f, std::uintptr_t pc) noexcept {
  table_reader t{f.handlers};
  std::uintptr_t base = f.begin;
  const unsigned base_encoding = t.fixed<std::uint8_t>();
  if (base_encoding != table_reader::omitted && !t.address(base_encoding, base)) return nullptr;
  const unsigned type_encoding = t.fixed<std::uint8_t>();
  if (type_encoding == table_reader::omitted) return nullptr;
  const auto types_at = t.unsigned_number();
  const unsigned char* const types = t.at + types_at;
  const unsigned call_encoding = t.fixed<std::uint8_t>();
  const auto calls_bytes = t.unsigned_number();
  const unsigned char* const actions = t.at + calls_bytes;
  while (t.at < actions) {
    std::uintptr_t start = 0, bytes = 0, pad = 0;
    if (!t.address(call_encoding, start) || !t.address(call_encoding, bytes) ||
        !t.address(call_encoding, pad))
      return nullptr;
    const auto action = t.unsigned_number();
    if (pc - 1 < f.begin + start) return nullptr;
    if (pc - 1 >= f.begin + start + bytes) continue;
    if (pad == 0 || action == 0) return nullptr;
    const std::int64_t filter = table_reader{actions + action - 1}.signed_number();
    const unsigned size = table_reader::bytes_of(type_encoding);
    if (filter <= 0 || size == 0) return nullptr;
    std::uintptr_t type = 0;
    table_reader at{types - static_cast<std::uint64_t>(filter) * size};
    return at.address(type_encoding, type) ? reinterpret_cast<const std::type_info*>(type) : nullptr;
  }
  return nullptr;
}

/// Does the module of @p info hold @p address?
bool holds(const dl_phdr_info& info, std::uintptr_t address) noexcept {
  for (unsigned i = 0; i < info.dlpi_phnum; ++i)
    if (const auto& part = info.dlpi_phdr[i];
        part.p_type == PT_LOAD && address - info.dlpi_addr - part.p_vaddr < part.p_memsz)
      return true;
  return false;
}
std::uintptr_t unwinder() noexcept { return reinterpret_cast<std::uintptr_t>(&_Unwind_RaiseException); }

}  // namespace

const char* frame_rules::refusal() noexcept {
  static const char* const why = [] {
    const char* found = "the C++ runtime's unwinder is nowhere";
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* arg) {
          if (!holds(*info, unwinder())) return 0;
          *static_cast<const char**>(arg) =
              holds(*info, reinterpret_cast<std::uintptr_t>(&frame_rules::refusal)) ||
                      info->dlpi_name == nullptr || *info->dlpi_name == '\0'
                  ? "the C++ runtime's unwinder is linked into the program (-static, -static-libgcc), where "
                    "nothing tells its code from others'"
                  : nullptr;
          return 1;
        },
        &found);
    return found;
  }();
  return why;
}

void frame_rules::learn(classify* of_handlers) noexcept {
  classify_ = of_handlers;
  count_ = 0;
  for (auto& r : cache_) r.pc = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* arg) {
        auto& self = *static_cast<frame_rules*>(arg);
        module m{~std::uintptr_t{0}, 0, nullptr};
        for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          const std::uintptr_t at = info->dlpi_addr + part.p_vaddr;
          if (part.p_type == PT_LOAD) {
            m.low = at < m.low ? at : m.low;
            m.high = at + part.p_memsz > m.high ? at + part.p_memsz : m.high;
          } else if (part.p_type == PT_GNU_EH_FRAME) {
            m.table = reinterpret_cast<const unsigned char*>(at);
          }
        }
        if (holds(*info, unwinder())) m.table = nullptr;
        if (self.count_ < most_modules) self.modules_[self.count_++] = m;
        return 0;
      },
      this);
}

void frame_rules::work_out(frame_rule& rule, std::uintptr_t pc, bool is_return) const noexcept {
  rule = {};
  rule.pc = pc;
  const std::uintptr_t look = is_return ? pc - 1 : pc;  // the call may be the last of its function
  const unsigned char* table = nullptr;
  for (std::size_t i = 0; i < count_ && table == nullptr; ++i)
    if (look - modules_[i].low < modules_[i].high - modules_[i].low) table = modules_[i].table;
  frame_description f;
  frame_state s;
  if (table == nullptr || !f.find(table, look) || !frame_program(f, look).run(s)) return;
  if (s.is_last) {
    rule.is = frame_rule::known::last;
    return;
  }
  const bool is_kept = s.cfa_register == rbx || s.cfa_register == rbp || s.cfa_register == rsp ||
                       (s.cfa_register >= r12 && s.cfa_register <= r15);
  constexpr std::int64_t most = 1 << 30, most_saved = 1 << 14;
  if (!is_kept || s.saved[return_address] != -8 || s.cfa_offset < -most || s.cfa_offset > most) return;
  rule.cfa_register = static_cast<std::uint8_t>(s.cfa_register);
  rule.cfa_offset = static_cast<std::int32_t>(s.cfa_offset);
  for (std::size_t i = 0; i < frame_rule::saved_registers; ++i) {
    const std::int64_t offset = s.saved[saved_columns[i]];
    if (offset != frame_rule::not_saved && (offset < -most_saved || offset > -16 || offset % 8 != 0)) return;
    rule.saved[i] = static_cast<std::int16_t>(offset);
  }
  rule.is = frame_rule::known::frame;
  if (!is_return || f.handlers == nullptr || classify_ == nullptr) return;
  if (const std::type_info* type = first_handler(f, pc)) rule.catches = classify_(*type);
}

const frame_rule& frame_rules::of_return(std::uintptr_t pc) noexcept {
  static_assert((cached & (cached - 1)) == 0);
  constexpr std::uint64_t spread = 0x9E3779B97F4A7C15;
  frame_rule& r = cache_[(pc * spread) >> 32 & (cached - 1)];
  if (r.pc != pc) [[unlikely]]
    work_out(r, pc, true);
  return r;
}

const frame_rule& frame_rules::of_instruction(std::uintptr_t pc) noexcept {
  work_out(exact_, pc, false);
  return exact_;
}

bool frame_rules::step(frame_registers& registers, const frame_rule& rule, std::uintptr_t low,
                       std::uintptr_t high) noexcept {
  if (rule.is != frame_rule::known::frame) return false;
  std::uintptr_t* const places[] = {&registers.rbx, &registers.rbp, &registers.r12,
                                    &registers.r13, &registers.r14, &registers.r15};
  std::uintptr_t base = registers.rsp;
  for (std::size_t i = 0; i < frame_rule::saved_registers; ++i)
    if (rule.cfa_register == saved_columns[i]) base = *places[i];
  const std::uintptr_t cfa = base + static_cast<std::uintptr_t>(std::int64_t{rule.cfa_offset});
  constexpr std::uintptr_t word = sizeof(std::uintptr_t);
  if (cfa < low + word || cfa > high || cfa % word != 0) return false;
  for (std::size_t i = 0; i < frame_rule::saved_registers; ++i) {
    if (rule.saved[i] == frame_rule::not_saved) continue;
    const std::uintptr_t at = cfa + static_cast<std::uintptr_t>(std::int64_t{rule.saved[i]});
    // Below the stack pointer lies what a function without calls may have put there.
    constexpr std::uintptr_t red_zone = 128;
    if (at + red_zone < low) return false;
  }
  for (std::size_t i = 0; i < frame_rule::saved_registers; ++i)
    if (rule.saved[i] != frame_rule::not_saved)
      *places[i] = *reinterpret_cast<const std::uintptr_t*>(
          cfa + static_cast<std::uintptr_t>(std::int64_t{rule.saved[i]}));
  registers.rip = *reinterpret_cast<const std::uintptr_t*>(cfa - word);
  registers.rsp = cfa;
  return true;
}

}  // namespace godwit::context

#else

namespace godwit::context {
const char* frame_rules::refusal() noexcept { return "there are no rules for frames of this architecture"; }
void frame_rules::learn(classify*) noexcept {}
const frame_rule& frame_rules::of_return(std::uintptr_t) noexcept { return exact_; }
const frame_rule& frame_rules::of_instruction(std::uintptr_t) noexcept { return exact_; }
bool frame_rules::step(frame_registers&, const frame_rule&, std::uintptr_t, std::uintptr_t) noexcept {
  return false;
}
}  // namespace godwit::context

#endif
