// The parallel algorithms on global memory, all of them. See docs/algorithms.md; tests: tests/algorithm/.
#pragma once

#include <godwit/algorithm/blocks.hpp>
#include <godwit/algorithm/for_each.hpp>
#include <godwit/algorithm/reduce.hpp>
