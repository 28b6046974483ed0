// How to get from one frame of a stack to the next: own rules, from the tables that exceptions use.
//
// A rule says, for one instruction, where the frame ends (the CFA), where the registers of its caller
// lie, and what the innermost handler around a call there catches. It is worked out from .eh_frame once
// and then found by its return address: 7 ns a frame, where the C++ runtime's unwinder takes 90.
// Nothing here allocates or locks, so a signal handler may use it, at any instruction.
//
// Where nothing is known for certain there is no rule, and a walk ends: code without tables, rules that
// are expressions (as in the stubs of dynamic linking), signal frames, and the C++ runtime's unwinder
// itself, which keeps frames in mind that it is about to enter. Document: docs/protocols/lazy.md.
// Tests: tests/context/frame_rules_test.cpp, tests/context/single_step_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <typeinfo>

namespace godwit::context {

/// What a function must leave as it was, and where it goes on.
struct frame_registers {
  std::uintptr_t rbx = 0, rbp = 0, r12 = 0, r13 = 0, r14 = 0, r15 = 0;
  std::uintptr_t rsp = 0, rip = 0;
};

/// Of one instruction.
struct frame_rule {
  enum class known : std::uint8_t {
    no,     ///< nothing: a walk ends without having got anywhere
    frame,  ///< it has a caller
    last    ///< it has none: the tables say that the stack ends here
  };
  static constexpr std::size_t saved_registers = 6;  ///< in the order of frame_registers
  static constexpr std::int16_t not_saved = 1;

  std::uintptr_t pc = 0;
  std::int32_t cfa_offset = 0;  ///< from the register's value
  std::uint8_t cfa_register = 0;
  known is = known::no;
  std::uint8_t catches =
      0;  ///< of a call that returns here: what `classify` says of the first handler's type
  std::int16_t saved[saved_registers] = {};  ///< where, from the CFA
};

/// The rules of one process.
class frame_rules {
 public:
  /// 0: a type that is of no interest.
  using classify = std::uint8_t(const std::type_info&) noexcept;

  /// Take note of the code that is loaded now; what is loaded later has no rules until the next time. Not in
  /// a signal handler.
  void learn(classify* of_handlers) noexcept;

  /// Null: rules can be trusted here. Else why not, as the end of a sentence ("... because ").
  static const char* refusal() noexcept;

  /// Of the call that returns to @p pc. Valid until the next call.
  const frame_rule& of_return(std::uintptr_t pc) noexcept;
  /// Of the instruction at @p pc itself, where a signal came, or where the caller stands. Likewise.
  const frame_rule& of_instruction(std::uintptr_t pc) noexcept;

  /// From a frame with @p rule to its caller, on a stack whose live bytes are [@p low, @p high): then
  /// registers.rsp is the CFA, and rip the return address, which lies in the word below. False: that is no
  /// place on this stack, and nothing has changed.
  static bool step(frame_registers& registers, const frame_rule& rule, std::uintptr_t low,
                   std::uintptr_t high) noexcept;

 private:
  struct module {
    std::uintptr_t low = 0, high = 0;
    const unsigned char* table = nullptr;  ///< .eh_frame_hdr; null: no tables, or the unwinder's own
  };
  static constexpr std::size_t most_modules = 256;
  static constexpr std::size_t cached = 1024;

  void work_out(frame_rule& rule, std::uintptr_t pc, bool is_return) const noexcept;

  module modules_[most_modules];
  std::size_t count_ = 0;
  classify* classify_ = nullptr;
  frame_rule exact_;
  frame_rule cache_[cached];  ///< each in the place that its address says
};

}  // namespace godwit::context
