// Remote objects: join records, suspended threads, result bytes, messages. Local allocation, free from
// anywhere.
//
// Local collection (Distributed continuation stealing, III-B): all live objects of a worker are in a list of
// its own; a free by the owner takes effect at once, a free by anybody else is one store to the object's
// `freed` word; when the live bytes pass a limit, the owner walks the list and takes back what is marked.
// Invariant: used_bytes == sum of the sizes of the objects in the live list (check_invariants).
// (Policies that give back through a queue have marks too: of what a call from another host took along.)
// Not for user data and not a general allocator: only the owner allocates. Test: tests/sched/heap_test.cpp.
#pragma once

#include "base/check.hpp"
#include "base/world.hpp"
#include "sched/words.hpp"

namespace godwit::sched {

/// `created`: a record that is a fresh_thread.
enum class object_kind : std::uint16_t { record, image, bytes, message, segment, view, created };
constexpr bool is_record_kind(object_kind k) noexcept {
  return k == object_kind::record || k == object_kind::created;
}

// Values of object::freed that are not the next one of a queue.
inline constexpr std::uint64_t freed_not = 0;     ///< in use
inline constexpr std::uint64_t freed_marked = 1;  ///< given back by a mark
inline constexpr std::uint64_t freed_last = 2;    ///< given back through the queue, and the first that was

/// Head of every object. Home: the owner's heap.
struct object {
  std::uint16_t size_class;  ///< W owner
  object_kind kind;          ///< W owner
  /// of records (the parent's, W owner when made public, R thief) and images: rounding mode and the like
  std::uint32_t float_control;
  word freed;          ///< see freed_not; else ref of the next one of the queue. W who frees it, R owner
  std::uint64_t next;  ///< offset in the heap's segment; live list or free list. W/R owner
  std::uint64_t prev;  ///< W/R owner
};
static_assert(sizeof(object) == 32);

class heap {
 public:
  static constexpr std::size_t grain = 64;

  /// @p segment_base common address of the own segment, [begin, begin + bytes) the range to manage.
  /// @p give_back: pages of large freed objects go back to the system. @p scarce: few bytes count more than
  /// the time of an allocation, as there are many heaps in this process.
  void init(std::byte* segment_base, std::byte* begin, std::size_t bytes, word* live_head,
            bool give_back = true, bool scarce = false) noexcept;

  /// Policy locked_free: others give objects back through this queue (see locked_queue) instead of marking
  /// them. @p turn: of waiting for that lock, in a heap that is full.
  void use_queue(word* lock, word* head, base::lock_turn turn = base::turn_of) noexcept {
    queue_lock_ = lock;
    queue_head_ = head;
    lock_turn_ = turn;
  }
  bool has_queue() const noexcept { return queue_head_ != nullptr; }

  /// An object of at least @p bytes (head included), 64-byte aligned, contents undefined but for the head.
  /// Collects when the limit is passed; ends the run with a message when the heap is full. Local.
  object* allocate(object_kind kind, std::size_t bytes) noexcept {
    GODWIT_ASSERT(is_unexposed(), "the expose signal, which makes objects, cannot come in here");
    const auto c = static_cast<std::uint32_t>((bytes + grain - 1) / grain);
    if (c <= small_classes && free_[c] != 0 && used_ <= limit_ && queue_head_ == nullptr) [[likely]]
      return made(take_free(c), kind, c, c * grain);
    return allocate_slowly(kind, bytes);
  }
  /// By the owner only. Local.
  void free(object* o) noexcept {
    GODWIT_ASSERT(is_unexposed(), "the expose signal, which makes objects, cannot come in here");
    GODWIT_ASSERT(is_object(o), "only objects of this heap are freed here");
    GODWIT_ASSERT(o->prev != 0 ? at(o->prev)->next == offset(o) : live_ == offset(o),
                  "what is freed is live: the one before it names it");
    GODWIT_ASSERT(o->next == 0 || at(o->next)->prev == offset(o), "the live list is linked both ways");
    GODWIT_ASSERT(used_ >= bytes_of(o->size_class), "what is freed has been counted");
    if (o->prev != 0)
      at(o->prev)->next = o->next;
    else {
      live_ = o->next;
      live_head_->store(live_, std::memory_order_relaxed);
    }
    if (o->next != 0) at(o->next)->prev = o->prev;
    if (o->size_class > small_classes) [[unlikely]]
      give_back_pages(o);
    used_ -= bytes_of(o->size_class);
    o->next = free_[o->size_class];
    free_[o->size_class] = offset(o);
  }
  /// Take back everything that others have given back. Cost: one pass over the live objects.
  void collect() noexcept;
  /// The owner has nothing to do, and is about to count as idle (ID5: then the live list stays as it is). If
  /// memory is scarce, and few bytes are in use: collect, and pages behind the last live object go back to
  /// the system.
  void rest() noexcept;

  std::size_t used_bytes() const noexcept { return used_; }
  std::size_t high_bytes() const noexcept { return high_; }
  /// Of an object, head included. For assertions.
  static std::size_t room_of(const object& o) noexcept { return bytes_of(o.size_class); }
  /// Walks all lists; ends the run if they disagree with the counters.
  void check_invariants() const noexcept;

 private:
  /// For assertions. Outside a run (tests) there is no such signal.
  static bool is_unexposed() noexcept { return detail::hot().workers == 0 || detail::hot().in_runtime != 0; }
  // Sizes: multiples of 64 up to 1024, then four steps per power of two: at most a quarter is wasted.
  static constexpr std::size_t classes = 176;
  static constexpr std::uint32_t small_classes = 16;
  object* allocate_slowly(object_kind kind, std::size_t bytes) noexcept;
  std::size_t next_limit() const noexcept;
  void forget_end() noexcept;
  /// Memory is scarce, and a pass takes no time to speak of.
  bool is_worth_a_pass() const noexcept { return scarce_ && used_ <= std::size_t{16} << 10; }
  std::uint32_t free_class_for(std::uint32_t c) const noexcept;
  void give_back_pages(object* o) noexcept;
  void drain_queue(bool waits) noexcept;
  static std::uint32_t class_of(std::size_t bytes) noexcept;
  static std::size_t large_bytes_of(std::uint32_t size_class) noexcept;
  static std::size_t bytes_of(std::uint32_t c) noexcept {
    return c <= small_classes ? c * grain : large_bytes_of(c);
  }
  object* take_free(std::uint32_t c) noexcept {
    object* o = at(free_[c]);
    GODWIT_ASSERT(is_object(o) && o->size_class == c, "a free list holds objects of its class");
    free_[c] = o->next;
    return o;
  }
  /// For assertions: something that was cut from this heap.
  bool is_object(const object* o) const noexcept {
    const auto* p = reinterpret_cast<const std::byte*>(o);
    return p > base_ && p < fresh_ && (reinterpret_cast<std::uintptr_t>(p) & (grain - 1)) == 0 &&
           o->size_class < classes && bytes_of(o->size_class) <= static_cast<std::size_t>(fresh_ - p);
  }
  /// Into the live list.
  object* made(object* o, object_kind kind, std::uint32_t c, std::size_t size) noexcept {
    GODWIT_ASSERT(c != 0 && c < classes && size == bytes_of(c), "the size is that of the class");
    GODWIT_ASSERT(live_ == 0 || at(live_)->prev == 0, "nothing lies before the first live object");
    base::settle();  // of late stores to what was here before, perhaps with other bounds
    o->size_class = static_cast<std::uint16_t>(c);
    o->kind = kind;
    o->freed.store(freed_not, std::memory_order_relaxed);
    o->prev = 0;
    o->next = live_;
    if (live_ != 0) at(live_)->prev = offset(o);
    live_ = offset(o);
    live_head_->store(live_, std::memory_order_relaxed);
    used_ += size;
    if (used_ > high_) high_ = used_;
    return o;
  }
  object* at(std::uint64_t offset) const noexcept { return reinterpret_cast<object*>(base_ + offset); }
  std::uint64_t offset(const object* o) const noexcept {
    return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(o) - base_);
  }

  /// Of what is in use before the first pass for what others have given back; see next_limit.
  static constexpr std::size_t first_limit = 32 << 10, first_limit_if_scarce = 1 << 10;

  std::byte* base_ = nullptr;
  std::byte* begin_ = nullptr;
  std::byte* fresh_ = nullptr;    // as if never used yet: [fresh_, end_)
  std::byte* touched_ = nullptr;  // rest: what is above takes no memory
  std::byte* end_ = nullptr;
  bool give_back_ = true;
  bool scarce_ = false;
  word* live_head_ = nullptr;
  word* queue_lock_ = nullptr;  // of public_words; null: local collection
  word* queue_head_ = nullptr;
  base::lock_turn lock_turn_ = nullptr;
  std::uint64_t live_ = 0;
  std::uint64_t free_[classes] = {};
  std::size_t used_ = 0;
  std::size_t high_ = 0;
  std::size_t limit_ = first_limit;
};

}  // namespace godwit::sched
