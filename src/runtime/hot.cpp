// The hot page outside a run: poll is set, so that a stray spawn reports itself instead of crashing.
#include <godwit/detail/hot.hpp>

namespace {
godwit::detail::spawn_slot stray_slots_[2];
}

godwit::detail::hot_words godwit_hot_ = {stray_slots_, stray_slots_, nullptr, 0, 0, 1, 0, 0, nullptr, 0, 0, {1}};
