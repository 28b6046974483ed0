// The parallel algorithms on global memory, all of them. See docs/algorithms.md; tests: tests/algorithm/.
#pragma once

#include <godwit/algorithm/blocks.hpp>
#include <godwit/algorithm/for_each.hpp>
#include <godwit/algorithm/ordinary.hpp>
#include <godwit/algorithm/partition.hpp>
#include <godwit/algorithm/reduce.hpp>
#include <godwit/algorithm/scan.hpp>
#include <godwit/algorithm/search.hpp>
#include <godwit/algorithm/shuffle.hpp>
#include <godwit/algorithm/sort.hpp>
